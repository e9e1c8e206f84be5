#include "frontend/compare/cases/language_cases.h"

#include "src/ops/linear_cross_entropy.h"
#include "src/ops/multilinear_attention.h"

namespace keel::compare {

Outputs small_multilinear(CaseBuilder& d) {
  ops::MultilinearOperands all{d.normal({3, 5, 6}), d.normal({3, 5, 6}), d.normal({3, 5, 6}),
                               d.normal({5, 6}),    d.normal({3, 5, 6}), d.normal({25, 7})};
  return {ops::multilinear_attention(d.graph, all),
          ops::multilinear_attention(d.graph, all, {.causal = false})};
}

// One attention has more sequences than a task has queries, one has few, and one has hard numbers.
Outputs large_multilinear(CaseBuilder& d) {
  Graph& g = d.graph;
  const auto operands = [&](std::int64_t b, std::int64_t n, std::int64_t rank, std::int64_t width) {
    return ops::MultilinearOperands{d.normal({b, n, rank}), d.normal({b, n, rank}),
                                    d.normal({b, n, rank}), d.normal({n, rank}),
                                    d.normal({b, n, rank}), d.normal({n * n, width})};
  };
  ops::MultilinearOperands hard = operands(9, 6, 5, 11);
  hard.k = d.floats(Sampled::kMixed, {9, 6, 5}), hard.out = d.floats(Sampled::kMixed, {36, 11});
  return {ops::multilinear_attention(g, operands(19, 13, 17, 37)),
          ops::multilinear_attention(g, operands(2, 21, 9, 67)),
          ops::multilinear_attention(g, operands(412, 10, 3, 5)),
          ops::multilinear_attention(g, hard, {.causal = false})};
}

namespace {

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
          LossCase(d, d.floats(Sampled::kScores, {13, 5}), 37, {.cutoffs = {30}})};
}

Outputs losses_of(CaseBuilder& d, const std::vector<LossCase>& cases) {
  Outputs sums;
  for (const LossCase& loss : cases) {
    sums.push_back(ops::linear_cross_entropy(d.graph, loss.of, loss.attrs).sum);
  }
  return sums;
}

void mark_steps(CaseBuilder& d, const std::vector<LossCase>& cases) {
  using Gradient = LinearLossGradient;
  Outputs outputs;
  for (const auto& [of, attrs] : cases) {
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

Outputs small_linear_cross_entropy(CaseBuilder& d) { return losses_of(d, small_losses(d)); }
Outputs large_linear_cross_entropy(CaseBuilder& d) { return losses_of(d, large_losses(d)); }
void small_loss_step(CaseBuilder& d) { mark_steps(d, small_losses(d)); }
void large_loss_step(CaseBuilder& d) { mark_steps(d, large_losses(d)); }

}  // namespace keel::compare
