// Bounds of optimizer updates: their formulas (src/ops/optimizer_step.h) on numbers with errors.
#include <cmath>
#include <vector>

#include "frontend/compare/bounds/node_bounds.h"
#include "frontend/compare/bounds/running_error.h"
#include "src/ops/optimizer_step.h"

namespace keel::compare {
namespace {

using Bounds = NodeBounds;

// The values with which every update begins: r = lr * lr_scale and g' = scale * g + decay * p.
class ParameterUpdate {
 public:
  template <class Attrs>
  ParameterUpdate(const ComparedNode& node, const Attrs& attrs, int ids)
      : node_(node),
        is_lazy_(attrs.lazy),
        rate_(number(node, UpdateInput::kLr) * constant(attrs.lr_scale)),
        scale_(node.has(UpdateInput::kScale) ? number(node, UpdateInput::kScale) : Err(1)),
        decay_(constant(attrs.weight_decay)) {
    if (node.has(ids)) note_rows(node.input(ids).as<std::int32_t>());
  }

  // A step that diverged leaves everything as it is, to the bit.
  bool is_kept() const { return !std::isfinite(scale_.value); }
  std::size_t size() const { return node_.in(UpdateInput::kP).size(); }
  Err rate() const { return rate_; }
  Err parameter(std::size_t e) const { return node_.in(UpdateInput::kP)[e]; }
  Err gradient(std::size_t e, bool decays) const {
    const Err scaled = scale_ * Err(given(e));
    return decays && decay_.value != 0 ? scaled + decay_ * parameter(e) : scaled;
  }
  // A lazy update leaves the element as it is, to the bit.
  bool is_spared(std::size_t e) const { return is_lazy_ && places_[e / width_] < 0; }

 private:
  void note_rows(std::span<const std::int32_t> ids) {
    const Shape& table = node_.input(UpdateInput::kP).shape();
    width_ = std::size_t(table[1]);
    places_.assign(std::size_t(table[0]), -1);
    for (std::size_t j = 0; j < ids.size() && ids[j] < table[0]; ++j) {
      places_[std::size_t(ids[j])] = std::int64_t(j);
    }
  }
  double given(std::size_t e) const {
    if (places_.empty()) return node_.in(UpdateInput::kG)[e];
    const std::int64_t place = places_[e / width_];
    return place < 0 ? 0 : node_.in(UpdateInput::kG)[std::size_t(place) * width_ + e % width_];
  }
  static Err number(const ComparedNode& node, int input) {
    return {node.scalar(input), node.input_error(input, 0)};
  }

  const ComparedNode& node_;
  bool is_lazy_;
  std::vector<std::int64_t> places_;  // of each row of a table among the rows given, or -1
  std::size_t width_ = 1;
  Err rate_, scale_, decay_;
};

// a x + (1 - a) y. Other programs may form 1 - a from a float, and the whole as x + (1 - a) (y -
// x).
Err blend(double a, const Err& x, const Err& y, Kernels kernels) {
  if (kernels == Kernels::kKeel) return constant(a) * x + constant(1 - a) * y;
  const Err share = Err(1 - a, kEps);
  Err result = constant(a) * x + share * y;
  result.error += (1 - a) * kEps * (x.size() + (y - x).size() * 2);
  return result;
}
// By an approximate inverse, in other programs.
Err quotient(const Err& a, const Err& b, Kernels kernels) {
  return (a / b).rounded(kernels == Kernels::kKeel ? 0 : 3);
}

void sgd(const ComparedNode& n, Bounds& bounds) {
  const auto& attrs = n.attrs<SgdAttrs>();
  const ParameterUpdate update(n, attrs, SgdInput::kIds);
  if (update.is_kept()) return;
  const bool has_u = n.has(SgdInput::kU);
  const Err momentum = constant(attrs.momentum);
  for (std::size_t e = 0; e < update.size(); ++e) {
    if (update.is_spared(e)) continue;
    const Err g = update.gradient(e, true);
    const Err u = has_u ? momentum * Err(n.in(SgdInput::kU)[e]) + g : g;
    const Err direction = attrs.nesterov ? g + momentum * u : u;
    bounds[SgdOutput::kP].as<double>()[e] = (update.parameter(e) - update.rate() * direction).error;
    if (has_u) bounds[SgdOutput::kU].as<double>()[e] = u.error;
  }
}

// 1 - beta^t, a host's double rounded once.
double unbias(const AdamAttrs& attrs, double beta, double t) {
  return 1 - std::pow(attrs.release_bias ? 1 - beta : beta, t);
}

// m and v as a kernel may have them.
struct Moments {
  Err m, v;
};

// The same with its error: other programs take the power in float32, whose error grows with t.
Err unbias_of(const AdamAttrs& attrs, double beta, double t, Kernels kernels) {
  const double c = unbias(attrs, beta, t);
  if (kernels == Kernels::kKeel) return constant(c);
  return {c, kEps * (c + (t + 2) * std::abs(1 - c))};
}

Err adam_change(const AdamAttrs& attrs, double t, const Moments& next, Kernels kernels) {
  const Err c1 = unbias_of(attrs, attrs.beta1, t, kernels);
  const Err c2 = unbias_of(attrs, attrs.beta2, t, kernels), eps = constant(attrs.eps);
  if (attrs.raw_eps) {
    const Err rate = kernels == Kernels::kKeel ? constant(std::sqrt(c2.value) / c1.value)
                                               : quotient(sqrt(c2), c1, kernels);
    return quotient(rate * next.m, sqrt(next.v) + eps, kernels);
  }
  return quotient(quotient(next.m, c1, kernels), sqrt(quotient(next.v, c2, kernels)) + eps,
                  kernels);
}

void adam(const ComparedNode& n, Bounds& bounds) {
  const auto& attrs = n.attrs<AdamAttrs>();
  const ParameterUpdate update(n, attrs, AdamInput::kIds);
  if (update.is_kept()) return;
  const double t = double(n.number(AdamInput::kStep)) + 1;
  const Err shrink =
      attrs.decoupled ? Err(1) - update.rate() * constant(attrs.weight_decay) : Err(1);
  for (std::size_t e = 0; e < update.size(); ++e) {
    if (update.is_spared(e)) continue;
    const Err g = update.gradient(e, !attrs.decoupled);
    const Moments next{blend(attrs.beta1, n.in(AdamInput::kM)[e], g, n.kernels),
                       blend(attrs.beta2, n.in(AdamInput::kV)[e], g * g, n.kernels)};
    const Err change = adam_change(attrs, t, next, n.kernels);
    bounds[AdamOutput::kM].as<double>()[e] = next.m.error;
    bounds[AdamOutput::kV].as<double>()[e] = next.v.error;
    bounds[AdamOutput::kP].as<double>()[e] =
        (shrink * update.parameter(e) - (update.rate() * change).rounded(2)).error;
  }
}

void adagrad(const ComparedNode& n, Bounds& bounds) {
  const auto& attrs = n.attrs<AdagradAttrs>();
  const ParameterUpdate update(n, attrs, AdagradInput::kIds);
  if (update.is_kept()) return;
  for (std::size_t e = 0; e < update.size(); ++e) {
    if (update.is_spared(e)) continue;
    const Err g = update.gradient(e, true);
    const Err h = Err(n.in(AdagradInput::kH)[e]) + g * g;
    bounds[AdagradOutput::kH].as<double>()[e] = h.error;
    bounds[AdagradOutput::kP].as<double>()[e] =
        (update.parameter(e) -
         quotient(update.rate() * g, sqrt(h + constant(attrs.eps)), n.kernels))
            .error;
  }
}

// n - q^2 is taken as at least 0, which makes no error larger.
void graves(const ComparedNode& n, Bounds& bounds) {
  using In = RmspropInput;
  const auto& attrs = n.attrs<GravesAttrs>();
  const ParameterUpdate update(n, attrs, In::kIds);
  if (update.is_kept()) return;
  for (std::size_t e = 0; e < update.size(); ++e) {
    if (update.is_spared(e)) continue;
    const Err g = update.gradient(e, true);
    const Err next_n = blend(attrs.keep, n.in(In::kN)[e], g * g, n.kernels);
    const Err q = blend(attrs.keep, n.in(In::kQ)[e], g, n.kernels);
    Err variance = next_n - q * q;
    variance.value = std::max(variance.value, 0.0);
    const Err d = constant(attrs.momentum) * Err(n.in(In::kD)[e]) -
                  update.rate() * g / sqrt(variance + constant(attrs.eps));
    bounds[RmspropOutput::kN].as<double>()[e] = next_n.error;
    bounds[RmspropOutput::kQ].as<double>()[e] = q.error;
    bounds[RmspropOutput::kD].as<double>()[e] = d.error;
    bounds[RmspropOutput::kP].as<double>()[e] = (update.parameter(e) + d).error;
  }
}

}  // namespace

void add_update_rules(BoundRules& rules) {
  rules["sgd_step"] = sgd;
  rules["adam_step"] = adam;
  rules["adagrad_step"] = adagrad;
  rules["rmsprop_step"] = graves;
}

}  // namespace keel::compare
