// The formulas of optimizer updates for four neighbouring elements, and the inputs of the updates.
#pragma once

#include "backends/cuda/kernels/group4.cuh"
#include "src/ops/optimizer_step.h"

namespace keel::cuda {

// The gradient of a group4, and a mask of the elements to update; the others keep their values.
struct Change {
  Group4 g;
  unsigned taken = 0xf;

  __device__ bool takes(int i) const { return (taken >> i & 1u) != 0; }
};

// The data common to all updates: the scalars that every update reads, and their factors.
struct Common {
  Global<const float> lr, scale;
  double lr_scale;
  float decay;  // the share of p that is added to g'

  template <class Attrs>
  Common(const Attrs& attrs, const Binding& b)
      : lr(input(b.inputs[UpdateInput::kLr])),
        scale(input(b.inputs[UpdateInput::kScale])),
        lr_scale(attrs.lr_scale),
        decay(float(attrs.weight_decay)) {}
  bool operator==(const Common&) const = default;

  __device__ double rate() const { return lr[0] * lr_scale; }
  __device__ float factor() const { return scale.get(0, 1); }
  __device__ float gradient(float factor, float g, float p) const { return factor * g + decay * p; }
};

// For each optimizer: what all its parameters share, and the tensors, factors and state of one
// update. A state may be read before the factors are there.
struct Sgd : Common {
  using In = SgdInput;
  using Out = SgdOutput;
  struct Tensors {
    Global<const float> p, g, u;
    Global<float> next_p, next_u;
    __host__ __device__ std::int64_t groups4() const { return groups4_of(p.size()); }
  };
  struct State {
    Group4 p, u;
  };
  struct Factors {
    float scale, rate;
  };

  float momentum;
  bool nesterov;

  Sgd(const SgdAttrs& attrs, const Binding& b)
      : Common(attrs, b), momentum(float(attrs.momentum)), nesterov(attrs.nesterov) {}
  bool operator==(const Sgd&) const = default;

  static Tensors tensors(const Binding& b) {
    return {input(b.inputs[In::kP]), input(b.inputs[In::kG]), input(b.inputs[In::kU]),
            output(b.outputs[Out::kP]), output(b.outputs[Out::kU])};
  }

  __device__ Factors factors() const { return {factor(), float(rate())}; }
  __device__ static State read(const Tensors& t, std::int64_t q) {
    return {load_group4(t.p, q), load_group4(t.u, q)};
  }
  __device__ void update(const Tensors& t, const Factors& f, std::int64_t q, const State& state,
                         const Change& change) const {
    auto [p, u] = state;
    for (int i = 0; isfinite(f.scale) && i < 4; ++i) {
      if (!change.takes(i)) continue;
      const float own = gradient(f.scale, change.g.at[i], p.at[i]);
      u.at[i] = momentum * u.at[i] + own;
      p.at[i] -= f.rate * (nesterov ? own + momentum * u.at[i] : u.at[i]);
    }
    store_group4(t.next_p, q, p);
    if (t.u) store_group4(t.next_u, q, u);
  }
};

struct Adam : Common {
  using In = AdamInput;
  using Out = AdamOutput;
  struct Tensors {
    Global<const float> p, g, m, v;
    Global<float> next_p, next_m, next_v;
    __host__ __device__ std::int64_t groups4() const { return groups4_of(p.size()); }
  };
  struct State {
    Group4 p, m, v;
  };
  struct Factors {
    float scale, shrink, rate, unbias;
  };

  Global<const std::int32_t> step;
  double lr_decay;      // p is scaled by 1 - r lr_decay
  double base1, base2;  // powers of these are the bias left in m and v after t steps
  float beta1, beta2, gain1, gain2, eps;
  bool raw_eps;

  Adam(const AdamAttrs& attrs, const Binding& b)
      : Common(attrs, b),
        step(global<const std::int32_t>(b.inputs[In::kStep])),
        lr_decay(attrs.decoupled ? attrs.weight_decay : 0),
        base1(attrs.release_bias ? 1 - attrs.beta1 : attrs.beta1),
        base2(attrs.release_bias ? 1 - attrs.beta2 : attrs.beta2),
        beta1(float(attrs.beta1)),
        beta2(float(attrs.beta2)),
        gain1(float(1 - attrs.beta1)),
        gain2(float(1 - attrs.beta2)),
        eps(float(attrs.eps)),
        raw_eps(attrs.raw_eps) {
    if (attrs.decoupled) decay = 0;
  }
  bool operator==(const Adam&) const = default;

  static Tensors tensors(const Binding& b) {
    return {input(b.inputs[In::kP]),   input(b.inputs[In::kG]),    input(b.inputs[In::kM]),
            input(b.inputs[In::kV]),   output(b.outputs[Out::kP]), output(b.outputs[Out::kM]),
            output(b.outputs[Out::kV])};
  }

  __device__ Factors factors() const {
    const double t = double(step[0]) + 1, r = rate();
    const double c1 = 1 - pow(base1, t), c2 = 1 - pow(base2, t);
    return {factor(), float(1 - r * lr_decay), float(raw_eps ? r * sqrt(c2) / c1 : r / c1),
            float(raw_eps ? 1 : 1 / c2)};
  }
  __device__ static State read(const Tensors& t, std::int64_t q) {
    return {load_group4(t.p, q), load_group4(t.m, q), load_group4(t.v, q)};
  }
  __device__ void update(const Tensors& t, const Factors& f, std::int64_t q, const State& state,
                         const Change& change) const {
    auto [p, m, v] = state;
    for (int i = 0; isfinite(f.scale) && i < 4; ++i) {
      if (!change.takes(i)) continue;
      const float own = gradient(f.scale, change.g.at[i], p.at[i]);
      m.at[i] = beta1 * m.at[i] + gain1 * own;
      v.at[i] = beta2 * v.at[i] + gain2 * own * own;
      p.at[i] = f.shrink * p.at[i] - f.rate * m.at[i] / (sqrtf(v.at[i] * f.unbias) + eps);
    }
    store_group4(t.next_p, q, p);
    store_group4(t.next_m, q, m);
    store_group4(t.next_v, q, v);
  }
};

struct Adagrad : Common {
  using In = AdagradInput;
  using Out = AdagradOutput;
  struct Tensors {
    Global<const float> p, g, h;
    Global<float> next_p, next_h;
    __host__ __device__ std::int64_t groups4() const { return groups4_of(p.size()); }
  };
  struct State {
    Group4 p, h;
  };
  struct Factors {
    float scale, rate;
  };

  float eps;

  Adagrad(const AdagradAttrs& attrs, const Binding& b) : Common(attrs, b), eps(float(attrs.eps)) {}
  bool operator==(const Adagrad&) const = default;

  static Tensors tensors(const Binding& b) {
    return {input(b.inputs[In::kP]), input(b.inputs[In::kG]), input(b.inputs[In::kH]),
            output(b.outputs[Out::kP]), output(b.outputs[Out::kH])};
  }

  __device__ Factors factors() const { return {factor(), float(rate())}; }
  __device__ static State read(const Tensors& t, std::int64_t q) {
    return {load_group4(t.p, q), load_group4(t.h, q)};
  }
  __device__ void update(const Tensors& t, const Factors& f, std::int64_t q, const State& state,
                         const Change& change) const {
    auto [p, h] = state;
    for (int i = 0; isfinite(f.scale) && i < 4; ++i) {
      if (!change.takes(i)) continue;
      const float own = gradient(f.scale, change.g.at[i], p.at[i]);
      h.at[i] += own * own;
      p.at[i] -= f.rate * own / sqrtf(h.at[i] + eps);
    }
    store_group4(t.next_p, q, p);
    store_group4(t.next_h, q, h);
  }
};

struct Graves : Common {
  using In = RmspropInput;
  using Out = RmspropOutput;
  struct Tensors {
    Global<const float> p, g, n, q, d;
    Global<float> next_p, next_n, next_q, next_d;
    __host__ __device__ std::int64_t groups4() const { return groups4_of(p.size()); }
  };
  struct State {
    Group4 p, n, q, d;
  };
  struct Factors {
    float scale, rate;
  };

  float keep, gain, momentum, eps;

  Graves(const GravesAttrs& attrs, const Binding& b)
      : Common(attrs, b),
        keep(float(attrs.keep)),
        gain(float(1 - attrs.keep)),
        momentum(float(attrs.momentum)),
        eps(float(attrs.eps)) {}
  bool operator==(const Graves&) const = default;

  static Tensors tensors(const Binding& b) {
    return {input(b.inputs[In::kP]),    input(b.inputs[In::kG]),    input(b.inputs[In::kN]),
            input(b.inputs[In::kQ]),    input(b.inputs[In::kD]),    output(b.outputs[Out::kP]),
            output(b.outputs[Out::kN]), output(b.outputs[Out::kQ]), output(b.outputs[Out::kD])};
  }

  __device__ Factors factors() const { return {factor(), float(rate())}; }
  __device__ static State read(const Tensors& t, std::int64_t group4) {
    return {load_group4(t.p, group4), load_group4(t.n, group4), load_group4(t.q, group4),
            load_group4(t.d, group4)};
  }
  __device__ void update(const Tensors& t, const Factors& f, std::int64_t group4,
                         const State& state, const Change& change) const {
    auto [p, n, q, d] = state;
    for (int i = 0; isfinite(f.scale) && i < 4; ++i) {
      if (!change.takes(i)) continue;
      const float own = gradient(f.scale, change.g.at[i], p.at[i]);
      n.at[i] = keep * n.at[i] + gain * own * own;
      q.at[i] = keep * q.at[i] + gain * own;
      const float var = fmaxf(n.at[i] - q.at[i] * q.at[i], 0);
      d.at[i] = momentum * d.at[i] - f.rate * own / sqrtf(var + eps);
      p.at[i] += d.at[i];
    }
    store_group4(t.next_p, group4, p);
    store_group4(t.next_n, group4, n);
    store_group4(t.next_q, group4, q);
    store_group4(t.next_d, group4, d);
  }
};

}  // namespace keel::cuda
