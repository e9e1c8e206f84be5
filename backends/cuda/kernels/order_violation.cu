// Errors of an order between points. Sums have a fixed order: no two threads add to one element.
#include "backends/cuda/kernels/kernels.h"
#include "backends/cuda/kernels/warp.cuh"
#include "src/ops/order_violation.h"

namespace keel::cuda {
namespace {

using In = OrderViolationInput;

constexpr int kPairBlock = 256;  // threads, a warp for each pair

struct Points {
  OrderViolationSizes sizes;
  Global<const float> x, y;

  // max(0, x_ik - y_jk), NaN where either is
  __device__ float above(std::int64_t i, std::int64_t j, std::int64_t k) const {
    const float d = x[i * sizes.width + k] - y[j * sizes.width + k];
    return d < 0 ? 0 : d;
  }
};

// A warp adds up the error of a pair.
__global__ void __launch_bounds__(kPairBlock) pair_errors(Points p, Global<float> e) {
  const std::int64_t pair = grid_thread() / kWarp;
  if (pair >= p.sizes.n * p.sizes.m) return;
  const std::int64_t i = pair / p.sizes.m, j = pair % p.sizes.m;
  const int lane = int(threadIdx.x) % kWarp;
  double sum = 0;
  for (std::int64_t k = lane; k < p.sizes.width; k += kWarp) {
    const float d = p.above(i, j, k);
    sum += double(d * d);
  }
  sum = over_warp(sum, Add());
  if (lane == 0) e[pair] = float(sum);
}

// A thread adds up an element of dx.
__global__ void gradient_of_x(Points p, Global<const float> de, Global<float> dx) {
  const auto [n, m, width] = p.sizes;
  for (std::int64_t at = grid_thread(); at < n * width; at += grid_threads()) {
    const std::int64_t i = at / width, k = at % width;
    float sum = 0;
    for (std::int64_t j = 0; j < m; ++j) {
      const float d = de[i * m + j];
      if (d != 0) sum += 2 * d * p.above(i, j, k);
    }
    dx[at] = sum;
  }
}

// A thread adds up an element of dy.
__global__ void gradient_of_y(Points p, Global<const float> de, Global<float> dy) {
  const auto [n, m, width] = p.sizes;
  for (std::int64_t at = grid_thread(); at < m * width; at += grid_threads()) {
    const std::int64_t j = at / width, k = at % width;
    float sum = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      const float d = de[i * m + j];
      if (d != 0) sum -= 2 * d * p.above(i, j, k);
    }
    dy[at] = sum;
  }
}

OrderViolationSizes sizes_of(const NodeContext& context) {
  return order_violation_sizes(context.input(In::kX).shape, context.input(In::kY).shape);
}

}  // namespace

Prepared prepare_order_violation(const NodeContext& context) {
  const OrderViolationSizes sizes = sizes_of(context);
  return kernel_of([sizes](const Binding& b) {
    const Points points{sizes, input(b.inputs[In::kX]), input(b.inputs[In::kY])};
    const Grid grid{ceil_div(sizes.n * sizes.m * kWarp, kPairBlock), kPairBlock};
    launch(pair_errors, grid, points, output(b.outputs[0]));
  });
}

Prepared prepare_order_violation_backward(const NodeContext& context) {
  const OrderViolationSizes sizes = sizes_of(context);
  return kernel_of([sizes](const Binding& b) {
    const Points points{sizes, input(b.inputs[In::kX]), input(b.inputs[In::kY])};
    const Global<const float> de = input(b.inputs[In::kDe]);
    launch(gradient_of_x, one_thread_each(sizes.n * sizes.width), points, de,
           output(b.outputs[OrderViolationOutput::kDx]));
    launch(gradient_of_y, one_thread_each(sizes.m * sizes.width), points, de,
           output(b.outputs[OrderViolationOutput::kDy]));
  });
}

}  // namespace keel::cuda
