// Optimizer updates, four elements a thread, and sums of squares. Every element is read before it
// is written, so that outputs may lie over their inputs.
#include "backends/cuda/kernels/kernels.h"
#include "backends/cuda/kernels/quad.cuh"
#include "backends/cuda/kernels/reduction.cuh"
#include "src/ops/optimizer_step.h"

namespace keel::cuda {
namespace {

constexpr std::int64_t kAdamBlocks = 2048;  // at most: more than run at once

struct Sgd {
  Global<const float> p, g, lr, scale, u;
  Global<float> next_p, next_u;
  float momentum, decay;
  bool nesterov;
};

// A scale that is not finite leaves everything as it is.
__global__ void sgd(Sgd a) {
  const float lr = a.lr[0], scale = a.scale.get(0, 1);
  const bool is_finite = isfinite(scale);
  for (std::int64_t q = grid_thread(); q < quads_of(a.p.size()); q += grid_threads()) {
    Quad p = load_quad(a.p, q), u = load_quad(a.u, q);
    const Quad g = load_quad(a.g, q);
    for (int i = 0; is_finite && i < 4; ++i) {
      const float gradient = scale * g.at[i] + a.decay * p.at[i];
      u.at[i] = a.momentum * u.at[i] + gradient;
      p.at[i] -= lr * (a.nesterov ? gradient + a.momentum * u.at[i] : u.at[i]);
    }
    store_quad(a.next_p, q, p);
    if (a.u) store_quad(a.next_u, q, u);
  }
}

// What Adam takes from the step and the scalars, the same for every element.
struct AdamFactors {
  float scale, shrink, rate, unbias;
};

struct Adam {
  Global<const float> p, g, lr, scale;
  Global<const std::int32_t> step;
  Global<const float> m, v;
  Global<float> next_p, next_m, next_v;
  double lr_decay, beta1, beta2;  // p is multiplied by 1 - lr lr_decay
  float decay, gain1, gain2, eps;

  __device__ AdamFactors factors() const {
    const double t = double(step[0]) + 1, rate = lr[0];
    return {scale.get(0, 1), float(1 - rate * lr_decay), float(rate / (1 - pow(beta1, t))),
            float(1 / (1 - pow(beta2, t)))};
  }
};

// The powers in double cost as much as many elements: a block works them out once.
__global__ void adam(Adam a) {
  __shared__ Shared<AdamFactors, 1> factors;
  if (threadIdx.x == 0) factors[0] = a.factors();
  __syncthreads();
  const AdamFactors f = factors[0];
  const bool is_finite = isfinite(f.scale);
  for (std::int64_t q = grid_thread(); q < quads_of(a.p.size()); q += grid_threads()) {
    Quad p = load_quad(a.p, q), m = load_quad(a.m, q), v = load_quad(a.v, q);
    const Quad g = load_quad(a.g, q);
    for (int i = 0; is_finite && i < 4; ++i) {
      const float gradient = f.scale * g.at[i] + a.decay * p.at[i];
      m.at[i] = float(a.beta1) * m.at[i] + a.gain1 * gradient;
      v.at[i] = float(a.beta2) * v.at[i] + a.gain2 * gradient * gradient;
      p.at[i] = f.shrink * p.at[i] - f.rate * m.at[i] / (sqrtf(v.at[i] * f.unbias) + a.eps);
    }
    store_quad(a.next_p, q, p);
    store_quad(a.next_m, q, m);
    store_quad(a.next_v, q, v);
  }
}

void run_sgd(const Binding& b, const SgdAttrs& attrs) {
  const Sgd args{input(b.inputs[0]),   input(b.inputs[1]),    input(b.inputs[2]),
                 input(b.inputs[3]),   input(b.inputs[4]),    output(b.outputs[0]),
                 output(b.outputs[1]), float(attrs.momentum), float(attrs.weight_decay),
                 attrs.nesterov};
  launch(sgd, one_thread_a_quad(args.p.size()), args);
}

void run_adam(const Binding& b, const AdamAttrs& attrs) {
  const Adam args{.p = input(b.inputs[0]),
                  .g = input(b.inputs[1]),
                  .lr = input(b.inputs[2]),
                  .scale = input(b.inputs[3]),
                  .step = global<const std::int32_t>(b.inputs[4]),
                  .m = input(b.inputs[5]),
                  .v = input(b.inputs[6]),
                  .next_p = output(b.outputs[0]),
                  .next_m = output(b.outputs[1]),
                  .next_v = output(b.outputs[2]),
                  .lr_decay = attrs.decoupled ? attrs.weight_decay : 0,
                  .beta1 = attrs.beta1,
                  .beta2 = attrs.beta2,
                  .decay = float(attrs.decoupled ? 0 : attrs.weight_decay),
                  .gain1 = float(1 - attrs.beta1),
                  .gain2 = float(1 - attrs.beta2),
                  .eps = float(attrs.eps)};
  Grid grid = one_thread_a_quad(args.p.size());
  grid.blocks = std::min(grid.blocks, kAdamBlocks);
  launch(adam, grid, args);
}

struct Squares {
  using Value = double;
  Global<const float> x;
  __device__ double operator()(std::int64_t, std::int64_t q) const {
    const Quad quad = load_quad(x, q);
    double sum = 0;
    for (const float value : quad.at) sum += double(value) * value;
    return sum;
  }
};

}  // namespace

Prepared prepare_sgd_step(const NodeContext& context) {
  const auto attrs = context.attrs<SgdAttrs>();
  return kernel_of([attrs](const Binding& b) { run_sgd(b, attrs); });
}

Prepared prepare_adam_step(const NodeContext& context) {
  const auto attrs = context.attrs<AdamAttrs>();
  return kernel_of([attrs](const Binding& b) { run_adam(b, attrs); });
}

Prepared prepare_sum_squares(const NodeContext& context) {
  const Reduction r = reduction_of_all(quads_of(context.input(0).shape.elements()));
  return kernel_of(
      [r](const Binding& b) {
        reduce<Add>(r, Squares{input(b.inputs[0])}, b.workspace,
                    StoreQuotient{output(b.outputs[0])});
      },
      partial_bytes<double>(r));
}

}  // namespace keel::cuda
