// The softmax over the words of a language model, plain or adaptive, with the rows of the words'
// vectors as weights.
#pragma once

#include <vector>

#include "frontend/nn/net.h"
#include "src/ops/linear_cross_entropy.h"

namespace keel::models {

struct WordSoftmax {
  std::vector<std::int64_t> cutoffs;       // the first word of each cluster; empty: plain
  Value table, bias;                       // (words, width), (words)
  Value clusters = {}, cluster_bias = {};  // (clusters, width), (clusters)

  // Makes the parameters "words", "logits/bias" and, of clusters, "clusters/weight" and
  // "clusters/bias"; weights are N(0, deviation^2), biases 0.
  WordSoftmax(const nn::Net& net, const Shape& table_shape, std::vector<std::int64_t> of_cutoffs,
              double deviation);

  // The losses of x (rows, width) with targets (rows); those of -1 do not count.
  ops::LinearLoss loss(Graph& g, Value x, Value targets, double label_smoothing) const;
  // log p of all words, up to a number that they share: (rows, words).
  Value logits(Graph& g, Value x) const;
};

}  // namespace keel::models
