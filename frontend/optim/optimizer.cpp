#include "frontend/optim/optimizer.h"

#include <algorithm>

#include "src/ops/elementwise.h"
#include "src/ops/layout.h"
#include "src/ops/norm/scale_norm.h"
#include "src/ops/optimizer_step.h"

namespace keel::optim {
namespace {

// One parameter about to be updated.
struct Parameter {
  Value p;
  ParameterGradient gradient;
  ParameterFacts facts;
};

struct Settings {
  const StepInputs& in;
  const OptimizerOptions& options;

  double decay(const Parameter& of) const {
    return of.facts.decays || options.decays_all ? options.weight_decay : 0;
  }
  bool is_lazy(const Parameter& of) const {
    return of.gradient.is_rows() && options.embedding_updates == EmbeddingUpdates::kLazy;
  }
};

Value moment(Graph& g, Value parameter, const std::string& suffix,
             const std::optional<Bounds>& bounds = {}) {
  const TensorType type = g.type(parameter);
  return g.state(g.node(parameter).name + suffix, type, nullptr, bounds);  // zeros
}

// The updated weight w with the vectors that `unit` names at length 1. A step whose scale is not
// finite leaves every bit of it as it is.
Value with_unit_vectors(Graph& g, Value w, UnitVectors unit, Value scale) {
  if (unit == UnitVectors::kNone) return w;
  const auto rows = [&](Value v) { return ops::unit_rows(g, v); };
  const Value divided = unit == UnitVectors::kRows
                            ? rows(w)
                            : ops::transpose(g, rows(ops::transpose(g, w, {1, 0})), {1, 0});
  if (!scale.valid()) return divided;
  const Value zero = g.constant(0.0, g.type(scale).dtype);
  return ops::select(g, ops::equal(g, ops::sub(g, scale, scale), zero), divided, w);
}

// The outputs of an update are the new values of the parameter, the first leaf, and of its states.
void mark(Graph& g, const Settings& s, Value next, std::initializer_list<Value> leaves) {
  int place = UpdateOutput::kP;
  for (Value leaf : leaves) {
    Value value = next.at(place);
    if (place == UpdateOutput::kP) {
      value = with_unit_vectors(g, value, g.node(leaf).facts.unit, s.in.scale);
    }
    g.mark_update(leaf, value);
    ++place;
  }
}

void apply_sgd(Graph& g, const Parameter& of, const Settings& s) {
  const SgdAttrs attrs{.momentum = s.options.momentum,
                       .weight_decay = s.decay(of),
                       .nesterov = s.options.nesterov,
                       .lr_scale = of.facts.lr_scale,
                       .lazy = s.is_lazy(of)};
  const Value u = attrs.momentum > 0 ? moment(g, of.p, ".momentum") : Value{};
  const Value next =
      ops::sgd_step(g, {of.p, of.gradient, s.in.lr, s.in.scale, u, of.gradient.ids}, attrs);
  u.valid() ? mark(g, s, next, {of.p, u}) : mark(g, s, next, {of.p});
}

void apply_adam(Graph& g, const Parameter& of, const Settings& s) {
  const OptimizerOptions& o = s.options;
  const bool is_fairseq = o.kind == Optimizer::kAdamFairseq;
  const bool is_release = o.kind == Optimizer::kAdamRelease;
  const AdamAttrs attrs{.beta1 = o.beta1,
                        .beta2 = o.beta2,
                        .eps = o.eps,
                        .weight_decay = s.decay(of),
                        .decoupled = o.kind == Optimizer::kAdamw || is_fairseq,
                        .raw_eps = is_fairseq || is_release,
                        .release_bias = is_release,
                        .lr_scale = of.facts.lr_scale,
                        .lazy = s.is_lazy(of)};
  const Value m = moment(g, of.p, ".m"), v = moment(g, of.p, ".v", kNotNegative);
  const Value next = ops::adam_step(
      g, {of.p, of.gradient, s.in.lr, s.in.scale, s.in.step, m, v, of.gradient.ids}, attrs);
  mark(g, s, next, {of.p, m, v});
}

void apply_adagrad(Graph& g, const Parameter& of, const Settings& s) {
  const Value h = moment(g, of.p, ".h", kNotNegative);
  const Value next = ops::adagrad_step(
      g, {of.p, of.gradient, s.in.lr, s.in.scale, h, of.gradient.ids},
      {.weight_decay = s.decay(of), .lr_scale = of.facts.lr_scale, .lazy = s.is_lazy(of)});
  mark(g, s, next, {of.p, h});
}

void apply_graves(Graph& g, const Parameter& of, const Settings& s) {
  const Value n = moment(g, of.p, ".n", kNotNegative), q = moment(g, of.p, ".q"),
              d = moment(g, of.p, ".d");
  const Value next = ops::rmsprop_step(
      g, {of.p, of.gradient, s.in.lr, s.in.scale, n, q, d, of.gradient.ids},
      {.weight_decay = s.decay(of), .lr_scale = of.facts.lr_scale, .lazy = s.is_lazy(of)});
  mark(g, s, next, {of.p, n, q, d});
}

void apply(Graph& g, const Parameter& of, const Settings& s) {
  switch (s.options.kind) {
    case Optimizer::kSgd:
      return apply_sgd(g, of, s);
    case Optimizer::kAdam:
    case Optimizer::kAdamw:
    case Optimizer::kAdamFairseq:
    case Optimizer::kAdamRelease:
      return apply_adam(g, of, s);
    case Optimizer::kAdagrad:
      return apply_adagrad(g, of, s);
    case Optimizer::kRmspropGraves:
      return apply_graves(g, of, s);
  }
}

}  // namespace

void validate(const OptimizerOptions& options) {
  const bool refuses_decay = options.kind == Optimizer::kAdamRelease;
  check(!refuses_decay || options.weight_decay == 0, ErrorKind::kUsage,
        "weight_decay: expected 0 for adam_release, got {}", options.weight_decay);
}

void apply_optimizer(Graph& graph, std::span<const Value> parameters,
                     std::span<const ParameterGradient> gradients, const StepInputs& inputs,
                     const OptimizerOptions& options) {
  validate(options);
  std::vector<Parameter> updated;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const ParameterFacts& facts = graph.node(parameters[i]).facts;
    if (facts.trains && gradients[i].valid())
      updated.push_back({parameters[i], gradients[i], facts});
  }
  // A device joins updates of equal attributes that stand in a row.
  const Settings settings{inputs, options};
  std::ranges::stable_sort(updated, {}, [&](const Parameter& of) {
    return std::pair{of.facts.lr_scale, settings.decay(of)};
  });
  for (const Parameter& of : updated) {
    const auto scope = graph.scope("update/" + graph.node(of.p).name);
    apply(graph, of, settings);
  }
}

void apply_optimizer(Graph& graph, std::span<const Value> parameters,
                     std::span<const Value> gradients, const StepInputs& inputs,
                     const OptimizerOptions& options) {
  const std::vector<ParameterGradient> whole(gradients.begin(), gradients.end());
  apply_optimizer(graph, parameters, whole, inputs, options);
}

}  // namespace keel::optim
