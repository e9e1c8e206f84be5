// Optimizer updates, element by element, and sums of squares.
#include "src/ops/optimizer_step.h"

#include <cmath>

#include "backends/reference/kernels/kernels.h"

namespace keel::reference {
namespace {

double scalar_or(const TensorRef& t, double otherwise) { return t ? *t.as<double>() : otherwise; }

// A diverged step leaves everything as it is: output j becomes its own input inputs[j].
void keep(const Binding& b, std::initializer_list<std::size_t> inputs) {
  std::size_t output = 0;
  for (std::size_t input : inputs) {
    if (b.inputs[input]) vector(b.outputs[output]) = vector(b.inputs[input]);
    ++output;
  }
}

// p <- p - lr u with u <- momentum u + g', or with Nesterov's look-ahead g' + momentum u.
void sgd(const Binding& b, const SgdAttrs& attrs) {
  const double lr = scalar_or(b.inputs[2], 0), scale = scalar_or(b.inputs[3], 1);
  if (!std::isfinite(scale)) return keep(b, {0, 4});
  const Vector p = vector(b.inputs[0]), g = vector(b.inputs[1]);
  Vector next_p = vector(b.outputs[0]);
  for (Eigen::Index e = 0; e < p.size(); ++e) {
    const double gradient = scale * g[e] + attrs.weight_decay * p[e];
    const double u = b.inputs[4] ? b.inputs[4].as<double>()[e] : 0;
    const double next_u = attrs.momentum * u + gradient;
    const double direction = attrs.nesterov ? gradient + attrs.momentum * next_u : next_u;
    next_p[e] = p[e] - lr * direction;
    if (b.outputs[1]) b.outputs[1].as<double>()[e] = next_u;
  }
}

// p <- p - lr mhat / (sqrt(vhat) + eps), where mhat and vhat are m and v without their bias to 0.
void adam(const Binding& b, const AdamAttrs& attrs) {
  const double lr = scalar_or(b.inputs[2], 0), scale = scalar_or(b.inputs[3], 1);
  if (!std::isfinite(scale)) return keep(b, {0, 5, 6});
  const double t = double(*b.inputs[4].as<std::int32_t>()) + 1;
  const double unbias_m = 1 - std::pow(attrs.beta1, t), unbias_v = 1 - std::pow(attrs.beta2, t);
  const double decay = attrs.decoupled ? 0 : attrs.weight_decay;
  const double shrink = attrs.decoupled ? 1 - lr * attrs.weight_decay : 1;
  const Vector p = vector(b.inputs[0]), g = vector(b.inputs[1]);
  const Vector m = vector(b.inputs[5]), v = vector(b.inputs[6]);
  Vector next_p = vector(b.outputs[0]), next_m = vector(b.outputs[1]),
         next_v = vector(b.outputs[2]);
  for (Eigen::Index e = 0; e < p.size(); ++e) {
    const double gradient = scale * g[e] + decay * p[e];
    next_m[e] = attrs.beta1 * m[e] + (1 - attrs.beta1) * gradient;
    next_v[e] = attrs.beta2 * v[e] + (1 - attrs.beta2) * gradient * gradient;
    const double mhat = next_m[e] / unbias_m, vhat = next_v[e] / unbias_v;
    next_p[e] = shrink * p[e] - lr * mhat / (std::sqrt(vhat) + attrs.eps);
  }
}

void sum_squares(const Binding& b) {
  *b.outputs[0].as<double>() = vector(b.inputs[0]).squaredNorm();
}

}  // namespace

Prepared prepare_sgd_step(const NodeContext& context) {
  const auto attrs = context.attrs<SgdAttrs>();
  return kernel_of([=](const Binding& b) { sgd(b, attrs); });
}

Prepared prepare_adam_step(const NodeContext& context) {
  const auto attrs = context.attrs<AdamAttrs>();
  return kernel_of([=](const Binding& b) { adam(b, attrs); });
}

Prepared prepare_sum_squares(const NodeContext&) { return kernel_of(sum_squares); }

}  // namespace keel::reference
