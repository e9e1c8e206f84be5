// Rows that are divided by a measure of their size but not centred. y is x times a scale of the
// row; dx has no component along x.
#pragma once

#include "backends/cuda/kernels/norm/centred_row.cuh"

namespace keel::cuda {

// Returns 1 / sqrt(mean(x^2) + eps).
struct QuadraticMean {
  double eps;
  __device__ float operator()(double squares, std::int64_t n) const {
    return float(1 / sqrt(squares / double(n) + eps));
  }
};

// y = (x * s) * gain + bias with s = scale_of(sum of squares, width), which is saved.
template <class R, class ScaleOf>
__global__ void __launch_bounds__(R::kBlock)
    scaled_forward(Data x, AlongRow gain, AlongRow bias, Result y, Global<float> scale,
                   RowSizes sizes, ScaleOf scale_of) {
  if (R::is_idle(sizes.rows)) return;
  const R row({x}, sizes);
  const float s = scale_of(row_squares(row, Mean{}), sizes.width);
  row.store(
      y, [=](std::int64_t, float value, float gain, float bias) { return value * s * gain + bias; },
      gain, bias);
  if (row.is_first()) scale[row.index()] = s;
}

struct ScaledForward {
  Data x;
  AlongRow gain, bias;
  Result y;
  Global<float> scale;
  RowSizes sizes;
};
template <class ScaleOf>
void run_scaled_forward(const ScaledForward& a, const ScaleOf& scale_of) {
  with_short_row<1>(a.sizes.width, [&]<class R>(std::type_identity<R> row) {
    launch(scaled_forward<R, ScaleOf>, grid_of_rows(row, a.sizes.rows), a.x, a.gain, a.bias, a.y,
           a.scale, a.sizes, scale_of);
  });
}

struct ScaledBackward {
  Data x, dy;
  AlongRow gain;
  Global<const float> scale;
  Result dx;
  RowSizes sizes;
};

// dx = s * (g - xhat * mean(g * xhat)), g = dy * gain, xhat = x * s.
template <class R>
__global__ void __launch_bounds__(R::kBlock) scaled_backward(ScaledBackward a) {
  if (R::is_idle(a.sizes.rows)) return;
  const R row({a.x, a.dy}, a.sizes);
  const float s = a.scale[row.index()];
  const auto product = [=](std::int64_t, float x, float dy, float gain) {
    return dy * gain * (x * s);
  };
  const float slope = row.sum(product, a.gain) / float(a.sizes.width);
  row.store(
      a.dx,
      [=](std::int64_t, float x, float dy, float gain) { return s * (dy * gain - x * s * slope); },
      a.gain);
}

inline void run_scaled_backward(const ScaledBackward& args) {
  with_short_row<2>(args.sizes.width, [&]<class R>(std::type_identity<R> row) {
    launch(scaled_backward<R>, grid_of_rows(row, args.sizes.rows), args);
  });
}

}  // namespace keel::cuda
