// Optimizer updates, four elements a thread, of many parameters in one launch. Every element is
// read before it is written, so that outputs may lie over their inputs.
#include "backends/cuda/kernels/joined.cuh"
#include "backends/cuda/kernels/kernels.h"
#include "src/ops/optimizer_step.h"

namespace keel::cuda {
namespace {

constexpr std::int64_t kUpdateBlocks = 2048;  // at most, about: more than run at once

// What is the same for all parameters of an optimizer, and what an update takes from it.
struct Sgd {
  struct Tensors {
    Global<const float> p, g, u;
    Global<float> next_p, next_u;
    __host__ __device__ std::int64_t quads() const { return quads_of(p.size()); }
  };
  struct Factors {
    float lr, scale;
  };

  Global<const float> lr, scale;
  float momentum, decay;
  bool nesterov;

  Sgd(const SgdAttrs& attrs, const Binding& b)
      : lr(input(b.inputs[2])),
        scale(input(b.inputs[3])),
        momentum(float(attrs.momentum)),
        decay(float(attrs.weight_decay)),
        nesterov(attrs.nesterov) {}
  bool operator==(const Sgd&) const = default;

  static Tensors tensors(const Binding& b) {
    return {input(b.inputs[0]), input(b.inputs[1]), input(b.inputs[4]), output(b.outputs[0]),
            output(b.outputs[1])};
  }

  __device__ Factors factors() const { return {lr[0], scale.get(0, 1)}; }
  __device__ void update(const Tensors& t, const Factors& f, std::int64_t q) const {
    Quad p = load_quad(t.p, q), u = load_quad(t.u, q);
    const Quad g = load_quad(t.g, q);
    for (int i = 0; isfinite(f.scale) && i < 4; ++i) {
      const float gradient = f.scale * g.at[i] + decay * p.at[i];
      u.at[i] = momentum * u.at[i] + gradient;
      p.at[i] -= f.lr * (nesterov ? gradient + momentum * u.at[i] : u.at[i]);
    }
    store_quad(t.next_p, q, p);
    if (t.u) store_quad(t.next_u, q, u);
  }
};

struct Adam {
  struct Tensors {
    Global<const float> p, g, m, v;
    Global<float> next_p, next_m, next_v;
    __host__ __device__ std::int64_t quads() const { return quads_of(p.size()); }
  };
  struct Factors {
    float scale, shrink, rate, unbias;
  };

  Global<const float> lr, scale;
  Global<const std::int32_t> step;
  double lr_decay, beta1, beta2;  // p is multiplied by 1 - lr lr_decay
  float decay, gain1, gain2, eps;

  Adam(const AdamAttrs& attrs, const Binding& b)
      : lr(input(b.inputs[2])),
        scale(input(b.inputs[3])),
        step(global<const std::int32_t>(b.inputs[4])),
        lr_decay(attrs.decoupled ? attrs.weight_decay : 0),
        beta1(attrs.beta1),
        beta2(attrs.beta2),
        decay(float(attrs.decoupled ? 0 : attrs.weight_decay)),
        gain1(float(1 - attrs.beta1)),
        gain2(float(1 - attrs.beta2)),
        eps(float(attrs.eps)) {}
  bool operator==(const Adam&) const = default;

  static Tensors tensors(const Binding& b) {
    return {input(b.inputs[0]),   input(b.inputs[1]),   input(b.inputs[5]),  input(b.inputs[6]),
            output(b.outputs[0]), output(b.outputs[1]), output(b.outputs[2])};
  }

  __device__ Factors factors() const {
    const double t = double(step[0]) + 1, rate = lr[0];
    return {scale.get(0, 1), float(1 - rate * lr_decay), float(rate / (1 - pow(beta1, t))),
            float(1 / (1 - pow(beta2, t)))};
  }
  __device__ void update(const Tensors& t, const Factors& f, std::int64_t q) const {
    Quad p = load_quad(t.p, q), m = load_quad(t.m, q), v = load_quad(t.v, q);
    const Quad g = load_quad(t.g, q);
    for (int i = 0; isfinite(f.scale) && i < 4; ++i) {
      const float gradient = f.scale * g.at[i] + decay * p.at[i];
      m.at[i] = float(beta1) * m.at[i] + gain1 * gradient;
      v.at[i] = float(beta2) * v.at[i] + gain2 * gradient * gradient;
      p.at[i] = f.shrink * p.at[i] - f.rate * m.at[i] / (sqrtf(v.at[i] * f.unbias) + eps);
    }
    store_quad(t.next_p, q, p);
    store_quad(t.next_m, q, m);
    store_quad(t.next_v, q, v);
  }
};

// The powers in double cost as much as many elements: a block works the factors out once. A scale
// that is not finite leaves everything as it is.
template <class Rule>
__global__ void __launch_bounds__(kPieceBlock)
    update(Rule rule, Batch<typename Rule::Tensors> batch) {
  __shared__ Shared<typename Rule::Factors, 1> shared;
  if (threadIdx.x == 0) shared[0] = rule.factors();
  __syncthreads();
  const typename Rule::Factors factors = shared[0];
  const Piece piece = batch.piece();
  const typename Rule::Tensors tensors = batch.nodes[piece.node];
  for (std::int64_t q = piece.first + threadIdx.x; q < piece.last; q += kPieceBlock) {
    rule.update(tensors, factors, q);
  }
}

// The updates of one parameter or of several.
template <class Rule>
struct Update {
  using Tensors = typename Rule::Tensors;
  static_assert(sizeof(Rule) + sizeof(Batch<Tensors>) <= 4096);

  Rule rule;
  std::vector<Binding> nodes;

  bool goes_with(const Update& other) const { return rule == other.rule; }
  void append(const Binding& node) { nodes.push_back(node); }
  void operator()() const {
    for (auto first = nodes.begin(); first != nodes.end();) {
      const auto last = first + std::min<std::ptrdiff_t>(nodes.end() - first, kMostJoined);
      std::int64_t quads = 0;
      for (auto node = first; node != last; ++node) quads += Rule::tensors(*node).quads();
      const std::int64_t turns = ceil_div(quads, kPieceBlock * kUpdateBlocks);
      Batch<Tensors> batch(kPieceBlock * std::max<std::int64_t>(turns, 1));
      for (; first != last; ++first) batch.append(Rule::tensors(*first));
      launch(update<Rule>, {batch.blocks(), kPieceBlock}, rule, batch);
    }
  }
};

template <class Rule, class Attrs>
Prepared prepare_update(const NodeContext& context) {
  return {[attrs = context.attrs<Attrs>()](const Binding& b) -> Kernel {
    return Update<Rule>{{attrs, b}, {b}};
  }};
}

}  // namespace

Prepared prepare_sgd_step(const NodeContext& context) {
  return prepare_update<Sgd, SgdAttrs>(context);
}

Prepared prepare_adam_step(const NodeContext& context) {
  return prepare_update<Adam, AdamAttrs>(context);
}

bool join_updates(Kernel& a, const Kernel& b) {
  return join<Update<Adam>>(a, b) || join<Update<Sgd>>(a, b);
}

}  // namespace keel::cuda
