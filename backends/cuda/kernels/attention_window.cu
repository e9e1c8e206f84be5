// The soft window of handwriting synthesis. In the forward a block computes a row; in the backward
// a warp computes a bump of a row.
#include <cmath>

#include "backends/cuda/kernels/functions.cuh"
#include "backends/cuda/kernels/kernels.h"
#include "backends/cuda/kernels/warp.cuh"
#include "src/ops/attention_window.h"

namespace keel::cuda {
namespace {

using In = AttentionWindowInput;
using Out = AttentionWindowOutput;

constexpr int kBlock = 128;

struct Window {
  AttentionWindowSizes sizes;
  std::int64_t symbols;
  Global<const float> components, kappa;  // kappa, or what is before it
  Global<const std::int32_t> text;

  __device__ float alpha(std::int64_t row, std::int64_t k) const {
    return exponential(components[3 * row * sizes.bumps + k]);
  }
  __device__ float beta(std::int64_t row, std::int64_t k) const {
    return exponential(components[(3 * row + 1) * sizes.bumps + k]);
  }
  __device__ float step(std::int64_t row, std::int64_t k) const {
    return exponential(components[(3 * row + 2) * sizes.bumps + k]);
  }
};

// Threads go through the row's symbols; then, phi being there, through those of the alphabet.
__global__ void __launch_bounds__(kBlock)
    move_window(Window op, Global<float> w, Global<float> kappa, Global<float> phi) {
  const std::int64_t row = blockIdx.x, bumps = op.sizes.bumps, length = op.sizes.length;
  for (std::int64_t k = threadIdx.x; k < bumps; k += kBlock) {
    kappa[row * bumps + k] = op.kappa[row * bumps + k] + op.step(row, k);
  }
  __syncthreads();
  for (std::int64_t u = threadIdx.x; u < length; u += kBlock) {
    float sum = 0;
    if (op.text[row * length + u] >= 0) {
      for (std::int64_t k = 0; k < bumps; ++k) {
        const float d = kappa[row * bumps + k] - float(u + 1);
        sum += op.alpha(row, k) * exponential(-op.beta(row, k) * d * d);
      }
    }
    phi[row * length + u] = sum;
  }
  __syncthreads();
  for (std::int64_t c = threadIdx.x; c < op.symbols; c += kBlock) {
    float sum = 0;
    for (std::int64_t u = 0; u < length; ++u) {
      const std::int32_t symbol = op.text[row * length + u];
      if (symbol >= op.symbols) sum = NAN;
      if (symbol == c) sum += phi[row * length + u];
    }
    w[row * op.symbols + c] = sum;
  }
}

struct WindowGradients {
  Global<const float> dw, dkappa, dphi;  // each may be absent
  Global<float> dcomponents, dbefore;
};

__global__ void __launch_bounds__(kBlock) turn_window(Window op, WindowGradients g) {
  const std::int64_t bumps = op.sizes.bumps, length = op.sizes.length;
  const std::int64_t of_warp = grid_thread() / kWarp;
  if (of_warp >= op.sizes.rows * bumps) return;
  const std::int64_t row = of_warp / bumps, k = of_warp % bumps;
  const float alpha = op.alpha(row, k), beta = op.beta(row, k), kappa = op.kappa[of_warp];
  float sum = 0, sum_d = 0, sum_d2 = 0;
  for (std::int64_t u = threadIdx.x % kWarp; u < length; u += kWarp) {
    const std::int32_t symbol = op.text[row * length + u];
    if (symbol < 0) continue;
    float dphi = g.dphi.get(row * length + u, 0);
    if (symbol >= op.symbols) {
      dphi = NAN;
    } else {
      dphi += g.dw.get(row * op.symbols + symbol, 0);
    }
    const float d = kappa - float(u + 1), e = dphi * exponential(-beta * d * d);
    sum += e;
    sum_d += e * d;
    sum_d2 += e * d * d;
  }
  sum = over_warp(sum, Add());
  sum_d = over_warp(sum_d, Add());
  sum_d2 = over_warp(sum_d2, Add());
  if (threadIdx.x % kWarp != 0) return;
  const float dbefore = g.dkappa.get(of_warp, 0) - 2 * alpha * beta * sum_d;
  const std::int64_t first = 3 * row * bumps + k;
  g.dcomponents[first] = alpha * sum;
  g.dcomponents[first + bumps] = -alpha * beta * sum_d2;
  g.dcomponents[first + 2 * bumps] = op.step(row, k) * dbefore;
  g.dbefore[of_warp] = dbefore;
}

Window window_of(const Binding& b, const AttentionWindowSizes& sizes, std::int64_t symbols) {
  return {sizes, symbols, input(b.inputs[In::kComponents]), input(b.inputs[In::kKappa]),
          global<const std::int32_t>(b.inputs[In::kText])};
}

AttentionWindowSizes sizes_of(const NodeContext& context) {
  return attention_window_sizes(context.input(In::kBefore).shape, context.input(In::kText).shape);
}

}  // namespace

Prepared prepare_attention_window(const NodeContext& context) {
  const std::int64_t symbols = context.attrs<AttentionWindowAttrs>().symbols;
  return kernel_of([sizes = sizes_of(context), symbols](const Binding& b) {
    launch(move_window, {sizes.rows, kBlock}, window_of(b, sizes, symbols),
           output(b.outputs[Out::kW]), output(b.outputs[Out::kKappa]),
           output(b.outputs[Out::kPhi]));
  });
}

Prepared prepare_attention_window_backward(const NodeContext& context) {
  using Gradient = AttentionWindowGradient;
  const std::int64_t symbols = context.attrs<AttentionWindowAttrs>().symbols;
  return kernel_of([sizes = sizes_of(context), symbols](const Binding& b) {
    const WindowGradients gradients{
        input(b.inputs[In::kDw]), input(b.inputs[In::kDkappa]), input(b.inputs[In::kDphi]),
        output(b.outputs[Gradient::kDcomponents]), output(b.outputs[Gradient::kDbefore])};
    launch(turn_window, {ceil_div(sizes.rows * sizes.bumps * kWarp, kBlock), kBlock},
           window_of(b, sizes, symbols), gradients);
  });
}

}  // namespace keel::cuda
