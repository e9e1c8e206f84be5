// The statistics of a centred row: its mean and the scale that divides it.
#pragma once

#include "backends/cuda/kernels/norm/mean.cuh"
#include "backends/cuda/kernels/norm/row.cuh"
#include "src/ops/norm/norm.h"

namespace keel::cuda {

// The part of NormStatistic that a kernel needs.
struct Statistic {
  double eps;
  bool unbiased, eps_outside;

  __device__ double divisor(std::int64_t n) const { return variance_count(n, unbiased); }
  // Returns 1 / s, given the sum of squares over n elements.
  __device__ float rstd(double squares, std::int64_t n) const {
    const double variance = squares / divisor(n);
    return float(eps_outside ? 1 / (sqrt(variance) + eps) : 1 / sqrt(variance + eps));
  }
  // The factor r in the slope of dx: s / (s - eps) for eps outside the
  // root, and 0 on a constant row.
  __device__ float outside_factor(float rstd) const {
    if (!eps_outside) return 1;
    const double deviation = 1 / double(rstd) - eps;
    return deviation > 0 ? float(1 / (rstd * deviation)) : 0;
  }
};

inline Statistic device_statistic(const NormStatistic& s) {
  return {s.eps, s.unbiased, s.eps_outside};
}

// Adds to `coarse` what is missing from the row's mean. The mean is computed in double where floats
// overflow.
template <class R>
__device__ Mean refine_mean(const R& row, std::int64_t width, float coarse) {
  const float fine =
      row.sum([=](std::int64_t, float x, auto...) { return x - coarse; }) / float(width);
  if (!R::any(!isfinite(fine))) return {coarse, fine};
  const double rest = row.sum([=](std::int64_t, float x, auto...) { return double(x) - coarse; });
  return {coarse, isfinite(fine) ? fine : float(rest / double(width))};
}

// The mean is taken relative to the first element, so that a constant row has exactly its value.
template <class R>
__device__ Mean row_mean(const R& row, std::int64_t width) {
  const float first = row.first();
  const float offset =
      row.sum([=](std::int64_t, float x, auto...) { return x - first; }) / float(width);
  float coarse = first + offset;
  if (R::any(!isfinite(offset))) {
    const double sum = row.sum([=](std::int64_t, float x, auto...) { return double(x) - first; });
    // The offset alone may be too large for a float; the mean is not.
    if (!isfinite(offset)) coarse = float(first + sum / double(width));
  }
  return refine_mean(row, width, coarse);
}

// The sum of squared deviations; it is computed in double where it overflows or
// underflows the range of a float.
template <class R>
__device__ double row_squares(const R& row, Mean mean) {
  const float squares = row.sum([=](std::int64_t, float x, auto...) {
    const float residual = mean.residual(x);
    return residual * residual;
  });
  const bool is_in_range = squares > 0x1p-100f && isfinite(squares);
  if (!R::any(!is_in_range)) return squares;
  const double wide = row.sum([=](std::int64_t, float x, auto...) {
    const double residual = double(x) - mean.coarse - mean.fine;
    return residual * residual;
  });
  return is_in_range ? squares : wide;
}

// Base of a finish, or of a gradient, that has no gain and bias.
struct Bare {
  __device__ AlongRow gain(std::int64_t) const { return {{}, 1}; }
  __device__ AlongRow bias(std::int64_t) const { return {}; }
};

// The rows (rows, width) to normalize, and the statistics that a forward saves.
struct CentredForward {
  Data x;
  Result y;
  Global<float> mean, rstd;
  RowSizes sizes;
  Statistic statistic;
};

// y = finish(xhat, gain, bias); the finish brings its own gain and bias along the row.
template <class R, class Finish>
__global__ void __launch_bounds__(R::kBlock) centred_forward(CentredForward a, Finish finish) {
  if (R::is_idle(a.sizes.rows)) return;
  const R row({a.x}, a.sizes);
  const Mean mean = row_mean(row, a.sizes.width);
  const float rstd = a.statistic.rstd(row_squares(row, mean), a.sizes.width);
  const Xhat xhat(mean, rstd);
  row.store(
      a.y,
      [=](std::int64_t, float x, float gain, float bias) { return finish(xhat(x), gain, bias); },
      finish.gain(row.index()), finish.bias(row.index()));
  if (row.is_first()) {
    a.mean[row.index()] = mean.coarse + mean.fine;
    a.rstd[row.index()] = rstd;
  }
}

template <class Finish>
void run_centred_forward(const CentredForward& args, const Finish& finish) {
  with_short_row<1>(args.sizes.width, [&]<class R>(std::type_identity<R> row) {
    launch(centred_forward<R, Finish>, grid_of_rows(row, args.sizes.rows), args, finish);
  });
}

struct CentredBackward {
  Data x, dy;
  Global<const float> mean, rstd;
  Result dx;
  RowSizes sizes;
  Statistic statistic;
};

// dx = rstd * (g - mean(g) - xhat * sum(g * xhat) / N * r), g = gradient(dy, xhat, gain); the
// gradient brings its own gain along the row.
template <class R, class Gradient>
__global__ void __launch_bounds__(R::kBlock)
    centred_backward(CentredBackward a, Gradient gradient) {
  if (R::is_idle(a.sizes.rows)) return;
  const R row({a.x, a.dy}, a.sizes);
  const auto gains = gradient.gain(row.index());
  const Mean mean = refine_mean(row, a.sizes.width, a.mean[row.index()]);
  const float rstd = a.rstd[row.index()];
  const Xhat xhat(mean, rstd);
  const auto g_of = [=](std::int64_t, float x, float dy, float gain) {
    return gradient(dy, xhat(x), gain);
  };
  const float mean_g = row.sum(g_of, gains) / float(a.sizes.width);
  const auto product = [=](std::int64_t column, float x, float dy, float gain) {
    return (g_of(column, x, dy, gain) - mean_g) * xhat(x);
  };
  const float slope = float(row.sum(product, gains) / a.statistic.divisor(a.sizes.width)) *
                      a.statistic.outside_factor(rstd);
  row.store(
      a.dx,
      [=](std::int64_t column, float x, float dy, float gain) {
        return xhat.saved_rstd() * (g_of(column, x, dy, gain) - mean_g - xhat(x) * slope);
      },
      gains);
}

template <class Gradient>
void run_centred_backward(const CentredBackward& args, const Gradient& gradient) {
  with_short_row<2>(args.sizes.width, [&]<class R>(std::type_identity<R> row) {
    launch(centred_backward<R, Gradient>, grid_of_rows(row, args.sizes.rows), args, gradient);
  });
}

}  // namespace keel::cuda
