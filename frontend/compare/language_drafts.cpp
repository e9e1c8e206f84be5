#include "frontend/compare/language_drafts.h"

#include "src/ops/linear_cross_entropy.h"
#include "src/ops/multilinear_attention.h"

namespace keel::compare {

Outputs small_multilinear(Draft& d) {
  ops::MultilinearOperands all{d.normal({3, 5, 6}), d.normal({3, 5, 6}), d.normal({3, 5, 6}),
                               d.normal({5, 6}),    d.normal({3, 5, 6}), d.normal({25, 7})};
  return {ops::multilinear_attention(d.graph, all),
          ops::multilinear_attention(d.graph, all, {.causal = false})};
}

// One attention has more sequences than a task has queries, one has few, and one has hard numbers.
Outputs large_multilinear(Draft& d) {
  Graph& g = d.graph;
  const auto operands = [&](std::int64_t b, std::int64_t n, std::int64_t rank, std::int64_t width) {
    return ops::MultilinearOperands{d.normal({b, n, rank}), d.normal({b, n, rank}),
                                    d.normal({b, n, rank}), d.normal({n, rank}),
                                    d.normal({b, n, rank}), d.normal({n * n, width})};
  };
  ops::MultilinearOperands hard = operands(9, 6, 5, 11);
  hard.k = d.floats(Drawn::kMixed, {9, 6, 5}), hard.out = d.floats(Drawn::kMixed, {36, 11});
  return {ops::multilinear_attention(g, operands(19, 13, 17, 37)),
          ops::multilinear_attention(g, operands(2, 21, 9, 67)),
          ops::multilinear_attention(g, operands(412, 10, 3, 5)),
          ops::multilinear_attention(g, hard, {.causal = false})};
}

Outputs small_linear_cross_entropy(Draft& d) {
  const Value x = d.normal({9, 8}), table = d.normal({23, 8}), bias = d.normal({23});
  const Value clusters = d.normal({2, 8}), labels = d.below({9}, 23);
  const ops::LinearLoss plain = ops::linear_cross_entropy(
      d.graph, {.x = x, .table = table, .bias = bias, .labels = labels}, {.label_smoothing = 0.1});
  const ops::LinearLoss adaptive = ops::linear_cross_entropy(d.graph,
                                                             {.x = x,
                                                              .table = table,
                                                              .bias = bias,
                                                              .clusters = clusters,
                                                              .cluster_bias = d.normal({2}),
                                                              .labels = labels},
                                                             {.cutoffs = {7, 15}});
  return {plain.sum, adaptive.sum};
}

// The losses have several tiles of classes, several blocks and chunks of rows, and hard numbers.
Outputs large_linear_cross_entropy(Draft& d) {
  Graph& g = d.graph;
  const auto loss = [&](Value x, std::int64_t words, const LinearLossAttrs& attrs) {
    const std::int64_t width = g.shape(x)[1], clusters = std::ssize(attrs.cutoffs);
    ops::LinearLossOperands of{.x = x,
                               .table = d.normal({words, width}),
                               .bias = d.normal({words}),
                               .labels = d.below({g.shape(x)[0]}, words)};
    if (clusters > 0) of.clusters = d.normal({clusters, width});
    if (clusters > 0) of.cluster_bias = d.normal({clusters});
    return ops::linear_cross_entropy(g, of, attrs).sum;
  };
  return {loss(d.normal({301, 19}), 397, {.label_smoothing = 0.1}),
          loss(d.normal({67, 37}), 1061, {.cutoffs = {211, 500}, .label_smoothing = 0.1}),
          loss(d.normal({4133, 3}), 29, {}),
          loss(d.floats(Drawn::kScores, {13, 5}), 37, {.cutoffs = {30}})};
}

}  // namespace keel::compare
