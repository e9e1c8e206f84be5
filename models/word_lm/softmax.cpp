#include "models/word_lm/softmax.h"

#include "frontend/nn/init.h"
#include "src/ops/elementwise.h"
#include "src/ops/layout.h"
#include "src/ops/matmul.h"
#include "src/ops/softmax.h"

namespace keel::models {

WordSoftmax::WordSoftmax(const nn::Net& net, const Shape& table_shape,
                         std::vector<std::int64_t> of_cutoffs, double deviation)
    : cutoffs(std::move(of_cutoffs)) {
  table = net.parameter("words", table_shape, nn::normal(deviation));
  bias = net.parameter("logits/bias", {table_shape[0]}, nn::zeros());
  if (cutoffs.empty()) return;
  const std::int64_t count = std::ssize(cutoffs);
  clusters = net.parameter("clusters/weight", {count, table_shape[1]}, nn::normal(deviation));
  cluster_bias = net.parameter("clusters/bias", {count}, nn::zeros());
}

ops::LinearLoss WordSoftmax::loss(Graph& g, Value x, Value targets, double label_smoothing) const {
  return ops::linear_cross_entropy(g,
                                   {.x = x,
                                    .table = table,
                                    .bias = bias,
                                    .clusters = clusters,
                                    .cluster_bias = cluster_bias,
                                    .labels = targets},
                                   {.cutoffs = cutoffs, .label_smoothing = label_smoothing});
}

Value WordSoftmax::logits(Graph& g, Value x) const {
  const Value all = ops::matmul(g, x, table, {.bias = bias, .transpose_b = true});
  if (cutoffs.empty()) return all;
  const std::int64_t count = std::ssize(cutoffs), words = g.shape(all)[1], head = cutoffs[0];
  const auto words_of = [&](std::int64_t first, std::int64_t last) {
    return ops::slice_axis(g, all, 1, first, last - first);
  };
  const Value of_clusters =
      ops::matmul(g, x, clusters, {.bias = cluster_bias, .transpose_b = true});
  const Value of_head = ops::log_softmax(g, ops::concat(g, {words_of(0, head), of_clusters}, 1));
  std::vector<Value> parts{ops::slice_axis(g, of_head, 1, 0, head)};
  for (std::int64_t c = 0; c < count; ++c) {
    const std::int64_t last = c + 1 < count ? cutoffs[std::size_t(c) + 1] : words;
    const Value within = ops::log_softmax(g, words_of(cutoffs[std::size_t(c)], last));
    parts.push_back(ops::add(g, within, ops::slice_axis(g, of_head, 1, head + c, 1)));
  }
  return ops::concat(g, parts, 1);
}

}  // namespace keel::models
