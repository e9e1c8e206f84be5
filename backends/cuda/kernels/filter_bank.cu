// The filters of DRAW's attention: in the forward a warp computes one filter, in the
// backward all filters of an image.
#include <cmath>

#include "backends/cuda/kernels/functions.cuh"
#include "backends/cuda/kernels/kernels.h"
#include "backends/cuda/kernels/warp.cuh"
#include "src/ops/filter_bank.h"

namespace keel::cuda {
namespace {

using In = FilterBankInput;
using Out = FilterBankOutput;
using Parameter = FilterParameter;

constexpr int kBlock = 128;

// One axis of all images.
struct Axis {
  FilterAxis axis;
  std::int64_t n, filters;
  bool is_x;
  Global<const float> p;

  __device__ double at(std::int64_t row, int place) const {
    return p[row * Parameter::kCount + place];
  }
  __device__ double stride(std::int64_t row) const {
    return axis.per_stride * exp(at(row, Parameter::kLogStride));
  }
  __device__ double variance(std::int64_t row) const {
    return exp(at(row, Parameter::kLogVariance));
  }
  // The centre of filter i; the first pixel is at 0.
  __device__ float mu(std::int64_t row, std::int64_t i) const {
    const double centre = axis.per_component * (at(row, is_x ? Parameter::kX : Parameter::kY) + 1);
    return float(centre + filter_offset(filters, i) * stride(row) - axis.first);
  }
};

__global__ void __launch_bounds__(kBlock) fill_filters(Axis of, Global<float> f) {
  const std::int64_t filter = grid_thread() / kWarp;
  if (filter >= of.n * of.filters) return;
  const std::int64_t row = filter / of.filters, size = of.axis.size;
  const float mu = of.mu(row, filter % of.filters), sharpness = float(1 / (2 * of.variance(row)));
  double sum = 0;
  for (std::int64_t a = threadIdx.x % kWarp; a < size; a += kWarp) {
    const float e = float(a) - mu;
    sum += exponential(-(sharpness * e * e));
  }
  const float factor = float(1 / (over_warp(sum, Add()) + of.axis.least));
  for (std::int64_t a = threadIdx.x % kWarp; a < size; a += kWarp) {
    const float e = float(a) - mu;
    f[filter * size + a] = exponential(-(sharpness * e * e)) * factor;
  }
}

// The gradients of p that come through one axis of an image; every lane has them all.
struct AxisGradient {
  double hat = 0, log_variance = 0, log_stride = 0;
};

__device__ AxisGradient gradient_of(const Axis& of, std::int64_t row, Global<const float> f,
                                    Global<const float> df) {
  AxisGradient total;
  if (!df) return total;
  const std::int64_t size = of.axis.size;
  const double variance = of.variance(row), stride = of.stride(row);
  for (std::int64_t i = 0; i < of.filters; ++i) {
    const std::int64_t first = (row * of.filters + i) * size;
    const float mu = of.mu(row, i);
    double dot = 0, te = 0, te2 = 0;
    for (std::int64_t a = threadIdx.x % kWarp; a < size; a += kWarp) {
      dot += double(df[first + a]) * f[first + a];
    }
    const float shift = float(over_warp(dot, Add()));
    for (std::int64_t a = threadIdx.x % kWarp; a < size; a += kWarp) {
      const float e = float(a) - mu, t = f[first + a] * (df[first + a] - shift);
      te += t * e;
      te2 += t * e * e;
    }
    const double dmu = over_warp(te, Add()) / variance;
    total.hat += of.axis.per_component * dmu;
    total.log_variance += over_warp(te2, Add()) / (2 * variance);
    total.log_stride += stride * dmu * filter_offset(of.filters, i);
  }
  return total;
}

struct Gradients {
  Global<const float> fx, fy, dfx, dfy;  // of the last two one may be absent
  Global<float> dp;
};

__global__ void __launch_bounds__(kBlock) turn_filters(Axis x, Axis y, Gradients g) {
  const std::int64_t row = grid_thread() / kWarp;
  if (row >= x.n) return;
  const AxisGradient of_x = gradient_of(x, row, g.fx, g.dfx);
  const AxisGradient of_y = gradient_of(y, row, g.fy, g.dfy);
  if (threadIdx.x % kWarp != 0) return;
  const std::int64_t first = row * Parameter::kCount;
  g.dp[first + Parameter::kX] = float(of_x.hat);
  g.dp[first + Parameter::kY] = float(of_y.hat);
  g.dp[first + Parameter::kLogVariance] = float(of_x.log_variance + of_y.log_variance);
  g.dp[first + Parameter::kLogStride] = float(of_x.log_stride + of_y.log_stride);
  g.dp[first + Parameter::kLogGamma] = 0;
}

Axis axis_of(const Binding& b, const FilterBankAttrs& attrs, bool is_x) {
  return {filter_axis(attrs, is_x), b.inputs[In::kP].type.shape[0], attrs.filters, is_x,
          input(b.inputs[In::kP])};
}

Grid warp_each(std::int64_t count) { return {ceil_div(count * kWarp, kBlock), kBlock}; }

}  // namespace

Prepared prepare_filter_bank(const NodeContext& context) {
  const auto attrs = context.attrs<FilterBankAttrs>();
  const std::int64_t filters = context.input(In::kP).shape[0] * attrs.filters;
  return kernel_of([=](const Binding& b) {
    launch(fill_filters, warp_each(filters), axis_of(b, attrs, true), output(b.outputs[Out::kFx]));
    launch(fill_filters, warp_each(filters), axis_of(b, attrs, false), output(b.outputs[Out::kFy]));
  });
}

Prepared prepare_filter_bank_backward(const NodeContext& context) {
  const auto attrs = context.attrs<FilterBankAttrs>();
  const std::int64_t n = context.input(In::kP).shape[0];
  return kernel_of([=](const Binding& b) {
    const Gradients gradients{input(b.inputs[In::kFx]), input(b.inputs[In::kFy]),
                              input(b.inputs[In::kDfx]), input(b.inputs[In::kDfy]),
                              output(b.outputs[0])};
    launch(turn_filters, warp_each(n), axis_of(b, attrs, true), axis_of(b, attrs, false),
           gradients);
  });
}

}  // namespace keel::cuda
