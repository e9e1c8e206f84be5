// Cases of losses, and of the softmaxes that they are made of.
#include "frontend/compare/cases/op_cases.h"
#include "src/ops/elementwise.h"
#include "src/ops/layout.h"
#include "src/ops/linear_cross_entropy.h"
#include "src/ops/loss.h"
#include "src/ops/mixture_density.h"
#include "src/ops/order_violation.h"
#include "src/ops/softmax.h"
#include "src/ops/stop_gradient.h"

namespace keel::compare {
namespace {

const Shape kManyScores{kManyRows, 19}, kWideScores{37, 1061};

template <Value (*kSoftmax)(Graph&, Value)>
Outputs small_softmax(CaseBuilder& d) {
  return {kSoftmax(d.graph, d.normal({9, 65}))};
}
template <Value (*kSoftmax)(Graph&, Value)>
Outputs large_softmax(CaseBuilder& d) {
  Graph& g = d.graph;
  return {kSoftmax(g, d.normal(kManyScores)), kSoftmax(g, scores(d, kWideScores)),
          kSoftmax(g, hostile(d)), kSoftmax(g, d.normal({3, 16421}))};
}
template <Value (*kSoftmax)(Graph&, Value)>
Outputs sized_softmax(CaseBuilder& d, std::int64_t n) {
  return {kSoftmax(d.graph, d.normal({rows_of(n), n})),
          kSoftmax(d.graph, scores(d, {rows_of(n), n}))};
}

Outputs small_cross_entropy(CaseBuilder& d) {
  const auto loss =
      ops::cross_entropy(d.graph, d.normal({9, 12}), d.below({9}, 12), {.label_smoothing = 0.1});
  return {loss.mean, loss.sum};
}
Outputs large_cross_entropy(CaseBuilder& d) {
  Graph& g = d.graph;
  const auto many = ops::cross_entropy(g, scores(d, kManyScores), d.below({kManyRows}, 19));
  const auto wide = ops::cross_entropy(g, d.normal(kWideScores), d.below({37}, 1061),
                                       {.label_smoothing = 0.1, .ignore_index = 0});
  const auto hard =
      ops::cross_entropy(g, scores(d, {300, 67}), d.below({300}, 67), {.label_smoothing = 0.1});
  return {many.mean, many.sum, wide.mean, wide.sum, hard.mean, hard.sum};
}
Outputs sized_cross_entropy(CaseBuilder& d, std::int64_t n) {
  Graph& g = d.graph;
  const std::int64_t rows = n > 5000 ? 3 : 37;
  const auto plain = ops::cross_entropy(g, d.normal({rows, n}), d.below({rows}, n));
  const auto hard = ops::cross_entropy(g, scores(d, {rows, n}), d.below({rows}, n),
                                       {.label_smoothing = 0.1, .ignore_index = 0});
  return {plain.mean, plain.sum, hard.mean, hard.sum};
}

// The two losses of logits x, and targets in (0, 1).
Outputs bce_of(CaseBuilder& d, Value x) {
  const Value targets = ops::sigmoid(d.graph, d.normal(d.graph.shape(x)));
  const auto loss = ops::bce_with_logits(d.graph, x, ops::stop_gradient(d.graph, targets));
  return {loss.mean, loss.sum};
}
Outputs small_bce(CaseBuilder& d) { return bce_of(d, d.normal({9, 12})); }
Outputs large_bce(CaseBuilder& d) {
  const Outputs near = bce_of(d, d.normal(kManyScores)), far = bce_of(d, scores(d, kManyScores));
  return {near[0], near[1], far[0], far[1]};
}
Outputs sized_bce(CaseBuilder& d, std::int64_t n) {
  const Outputs near = bce_of(d, d.normal({n})), far = bce_of(d, scores(d, {n}));
  return {near[0], near[1], far[0], far[1]};
}

Outputs small_order_violation(CaseBuilder& d) {
  return {ops::order_violation(d.graph, d.normal({9, 33}), d.normal({7, 33}))};
}
Outputs large_order_violation(CaseBuilder& d) {
  return {ops::order_violation(d.graph, d.normal({133, 67}), d.normal({141, 67})),
          ops::order_violation(d.graph, d.normal({kManyRows, 5}), d.normal({3, 5}))};
}
Outputs sized_order_violation(CaseBuilder& d, std::int64_t n) {
  return {ops::order_violation(d.graph, d.normal({rows_of(n), n}), d.normal({3, n}))};
}

// The negative log-likelihood of rows, of which the mask leaves some out.
Value density_of(CaseBuilder& d, std::int64_t rows, std::int64_t components, Value mask) {
  const Value y = d.normal({rows, 1 + 6 * components});
  const Value points = ops::stop_gradient(d.graph, d.normal({rows, 3}));
  return ops::mixture_density(d.graph, y, points, mask).nll;
}
Outputs small_mixture_density(CaseBuilder& d) {
  return {density_of(d, 9, 4, ops::reshape(d.graph, d.mask({3, 3}), {9}))};
}
Outputs large_mixture_density(CaseBuilder& d) {
  return {density_of(d, kManyRows, 1, {}), density_of(d, 133, 10, d.mask({133}))};
}

void small_errors(CaseBuilder& d) {
  d.mark({ops::classification_errors(d.graph, d.normal({9, 12}), d.below({9}, 12))});
}
void large_errors(CaseBuilder& d) {
  d.mark({ops::classification_errors(d.graph, scores(d, kManyScores), d.below({kManyRows}, 19)),
          ops::classification_errors(d.graph, d.normal(kWideScores), d.below({37}, 3))});
}

// A loss with sampled operands, and clusters if attrs has cut-offs.
struct LossCase {
  ops::LinearLossOperands of;
  LinearLossAttrs attrs;

  LossCase(CaseBuilder& d, Value x, std::int64_t words, LinearLossAttrs with)
      : attrs(std::move(with)) {
    const Shape& shape = d.graph.shape(x);
    const std::int64_t clusters = std::ssize(attrs.cutoffs);
    of = {.x = x,
          .table = d.normal({words, shape[1]}),
          .bias = d.normal({words}),
          .labels = d.below({shape[0]}, words)};
    if (clusters == 0) return;
    of.clusters = d.normal({clusters, shape[1]});
    of.cluster_bias = d.normal({clusters});
  }
};

std::vector<LossCase> small_losses(CaseBuilder& d) {
  return {LossCase(d, d.normal({9, 8}), 23, {.label_smoothing = 0.1}),
          LossCase(d, d.normal({9, 8}), 23, {.cutoffs = {7, 15}})};
}
// The losses have several tiles of classes, several blocks and chunks of rows, and hard numbers.
std::vector<LossCase> large_losses(CaseBuilder& d) {
  return {LossCase(d, d.normal({301, 19}), 397, {.label_smoothing = 0.1}),
          LossCase(d, d.normal({67, 37}), 1061, {.cutoffs = {211, 500}, .label_smoothing = 0.1}),
          LossCase(d, d.normal({4133, 3}), 29, {}),
          LossCase(d, scores(d, {13, 5}), 37, {.cutoffs = {30}})};
}

template <std::vector<LossCase> (*kLosses)(CaseBuilder&)>
Outputs linear_losses(CaseBuilder& d) {
  Outputs sums;
  for (const LossCase& loss : kLosses(d)) {
    sums.push_back(ops::linear_cross_entropy(d.graph, loss.of, loss.attrs).sum);
  }
  return sums;
}
// The losses joined with their backward.
template <std::vector<LossCase> (*kLosses)(CaseBuilder&)>
void loss_steps(CaseBuilder& d) {
  using Gradient = LinearLossGradient;
  Outputs outputs;
  for (const auto& [of, attrs] : kLosses(d)) {
    const Value step = d.graph.add(
        kLinearCrossEntropyStep,
        {of.x, of.table, of.bias, of.clusters, of.cluster_bias, of.labels, d.normal({})}, attrs);
    const int gradients = of.clusters.valid() ? Gradient::kDclusterBias : Gradient::kDbias;
    for (int i = 0; i <= LinearLossStep::kFirstGradient + gradients; ++i) {
      outputs.push_back(step.at(i));
    }
  }
  d.mark(outputs);
}

}  // namespace

const OpCaseTable& loss_cases() {
  static const OpCaseTable table{
      {"softmax",
       {with_gradient<small_softmax<ops::softmax>>, with_gradient<large_softmax<ops::softmax>>,
        with_gradient<sized_softmax<ops::softmax>>}},
      {"log_softmax",
       {with_gradient<small_softmax<ops::log_softmax>>,
        with_gradient<large_softmax<ops::log_softmax>>,
        with_gradient<sized_softmax<ops::log_softmax>>}},
      {"cross_entropy",
       {with_gradient<small_cross_entropy>, with_gradient<large_cross_entropy>,
        with_gradient<sized_cross_entropy>}},
      {"bce_with_logits",
       {with_gradient<small_bce>, with_gradient<large_bce>, with_gradient<sized_bce>}},
      {"order_violation",
       {with_gradient<small_order_violation>, with_gradient<large_order_violation>,
        with_gradient<sized_order_violation>}},
      {"mixture_density",
       {with_gradient<small_mixture_density>, with_gradient<large_mixture_density>}},
      {"classification_errors", {small_errors, large_errors}},
      {"linear_cross_entropy",
       {with_gradient<linear_losses<small_losses>>, with_gradient<linear_losses<large_losses>>}},
      {"linear_cross_entropy_step", {loss_steps<small_losses>, loss_steps<large_losses>}}};
  return table;
}

}  // namespace keel::compare
