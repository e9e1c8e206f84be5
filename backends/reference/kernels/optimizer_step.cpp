// Optimizer updates, element by element, and sums of squares.
#include "src/ops/optimizer_step.h"

#include <algorithm>
#include <cmath>

#include "backends/reference/kernels/kernels.h"

namespace keel::reference {
namespace {

// What every update begins with.
struct Step {
  double rate, scale, decay;  // decay: the share of p that is added to g'
  Vector p, g, next_p;

  template <class Attrs>
  Step(const Binding& b, const Attrs& attrs)
      : rate(*b.inputs[UpdateInput::kLr].as<double>() * attrs.lr_scale),
        scale(b.inputs[UpdateInput::kScale] ? *b.inputs[UpdateInput::kScale].as<double>() : 1),
        decay(attrs.weight_decay),
        p(vector(b.inputs[UpdateInput::kP])),
        g(vector(b.inputs[UpdateInput::kG])),
        next_p(vector(b.outputs[UpdateOutput::kP])) {}

  double gradient(Eigen::Index e) const { return scale * g[e] + decay * p[e]; }
};

// A diverged step leaves everything as it is: output j becomes its own input inputs[j].
void keep(const Binding& b, std::initializer_list<std::size_t> inputs) {
  std::size_t output = 0;
  for (std::size_t input : inputs) {
    if (b.inputs[input]) vector(b.outputs[output]) = vector(b.inputs[input]);
    ++output;
  }
}

// p <- p - r u with u <- momentum u + g', or with Nesterov's look-ahead g' + momentum u.
void sgd(const Binding& b, const SgdAttrs& attrs) {
  using In = SgdInput;
  using Out = SgdOutput;
  Step s(b, attrs);
  if (!std::isfinite(s.scale)) return keep(b, {In::kP, In::kU});
  for (Eigen::Index e = 0; e < s.p.size(); ++e) {
    const double gradient = s.gradient(e);
    const double u = b.inputs[In::kU] ? b.inputs[In::kU].as<double>()[e] : 0;
    const double next_u = attrs.momentum * u + gradient;
    const double direction = attrs.nesterov ? gradient + attrs.momentum * next_u : next_u;
    s.next_p[e] = s.p[e] - s.rate * direction;
    if (b.outputs[Out::kU]) b.outputs[Out::kU].as<double>()[e] = next_u;
  }
}

// p <- p - r mhat / (sqrt(vhat) + eps), where mhat and vhat are m and v without their bias to 0; or
// with eps beside the root of v as it is.
void adam(const Binding& b, const AdamAttrs& attrs) {
  using In = AdamInput;
  using Out = AdamOutput;
  Step s(b, attrs);
  if (!std::isfinite(s.scale)) return keep(b, {In::kP, In::kM, In::kV});
  const double t = double(*b.inputs[In::kStep].as<std::int32_t>()) + 1;
  const double base1 = attrs.release_bias ? 1 - attrs.beta1 : attrs.beta1;
  const double base2 = attrs.release_bias ? 1 - attrs.beta2 : attrs.beta2;
  const double c1 = 1 - std::pow(base1, t), c2 = 1 - std::pow(base2, t);
  if (attrs.decoupled) s.decay = 0;
  const double shrink = attrs.decoupled ? 1 - s.rate * attrs.weight_decay : 1;
  const Vector m = vector(b.inputs[In::kM]), v = vector(b.inputs[In::kV]);
  Vector next_m = vector(b.outputs[Out::kM]), next_v = vector(b.outputs[Out::kV]);
  for (Eigen::Index e = 0; e < s.p.size(); ++e) {
    const double gradient = s.gradient(e);
    next_m[e] = attrs.beta1 * m[e] + (1 - attrs.beta1) * gradient;
    next_v[e] = attrs.beta2 * v[e] + (1 - attrs.beta2) * gradient * gradient;
    const double mhat = next_m[e] / c1, vhat = next_v[e] / c2;
    const double change = attrs.raw_eps
                              ? std::sqrt(c2) / c1 * next_m[e] / (std::sqrt(next_v[e]) + attrs.eps)
                              : mhat / (std::sqrt(vhat) + attrs.eps);
    s.next_p[e] = shrink * s.p[e] - s.rate * change;
  }
}

// p <- p - r g' / sqrt(h + eps), h being the sum of all squares so far.
void adagrad(const Binding& b, const AdagradAttrs& attrs) {
  using In = AdagradInput;
  using Out = AdagradOutput;
  Step s(b, attrs);
  if (!std::isfinite(s.scale)) return keep(b, {In::kP, In::kH});
  const Vector h = vector(b.inputs[In::kH]);
  Vector next_h = vector(b.outputs[Out::kH]);
  for (Eigen::Index e = 0; e < s.p.size(); ++e) {
    const double gradient = s.gradient(e);
    next_h[e] = h[e] + gradient * gradient;
    s.next_p[e] = s.p[e] - s.rate * gradient / std::sqrt(next_h[e] + attrs.eps);
  }
}

// p <- p + d, d <- momentum d - r g' / sqrt(var + eps), var being the running variance of g'.
void graves(const Binding& b, const GravesAttrs& attrs) {
  using In = GravesInput;
  using Out = GravesOutput;
  Step s(b, attrs);
  if (!std::isfinite(s.scale)) return keep(b, {In::kP, In::kN, In::kQ, In::kD});
  const Vector n = vector(b.inputs[In::kN]), q = vector(b.inputs[In::kQ]),
               d = vector(b.inputs[In::kD]);
  Vector next_n = vector(b.outputs[Out::kN]), next_q = vector(b.outputs[Out::kQ]),
         next_d = vector(b.outputs[Out::kD]);
  for (Eigen::Index e = 0; e < s.p.size(); ++e) {
    const double gradient = s.gradient(e);
    next_n[e] = attrs.keep * n[e] + (1 - attrs.keep) * gradient * gradient;
    next_q[e] = attrs.keep * q[e] + (1 - attrs.keep) * gradient;
    const double var = std::max(next_n[e] - next_q[e] * next_q[e], 0.0);
    next_d[e] = attrs.momentum * d[e] - s.rate * gradient / std::sqrt(var + attrs.eps);
    s.next_p[e] = s.p[e] + next_d[e];
  }
}

void sum_squares(const Binding& b) {
  *b.outputs[0].as<double>() = vector(b.inputs[0]).squaredNorm();
}

template <class Attrs>
Prepared prepare(const NodeContext& context, void (*update)(const Binding&, const Attrs&)) {
  return kernel_of([=, attrs = context.attrs<Attrs>()](const Binding& b) { update(b, attrs); });
}

}  // namespace

Prepared prepare_sgd_step(const NodeContext& context) { return prepare(context, sgd); }
Prepared prepare_adam_step(const NodeContext& context) { return prepare(context, adam); }
Prepared prepare_adagrad_step(const NodeContext& context) { return prepare(context, adagrad); }
Prepared prepare_graves_step(const NodeContext& context) { return prepare(context, graves); }
Prepared prepare_sum_squares(const NodeContext&) { return kernel_of(sum_squares); }

}  // namespace keel::reference
