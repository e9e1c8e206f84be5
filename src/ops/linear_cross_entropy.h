// Cross entropy of logits that are products with the rows of a table, such as the embedding of a
// language model, without a matrix of all logits: kernels take a tile of the classes at a time, and
// the backward computes the tile again from x and lse.
//     z_i = x T^T + b over the words;    log p = log_softmax(z)
//   x (rows, d)   table T (V, d)   bias b (V) or absent   floating;   labels (rows) i32
// Rows with label == ignore_index do not count; a label outside [0, V) makes both sums NaN.
// Adaptive softmax (Grave et al. 2017) with cut-offs c_0 < c_1 < ... < V: cluster i has the words
// from c_i to before c_{i+1} (the last one: V). The head has the words before c_0 and one more
// class for each cluster, with the rows of `clusters` (n, d) and cluster_bias (n), absent without
// a bias. A word in cluster i has log p = log p_head(cluster i) + log p_i(word). The rows of T and
// the elements of b serve all parts. A cluster costs what its own rows cost: nothing without any.
//   outputs: sum () of the losses
//              (1 - s) (-log p[label]) + s mean_k(-log p[k])     over the classes k of a part,
//                added up over the parts that the word is in; s = label_smoothing
//            nll () of -log p[label], which takes no gradient
//            lse (1 + n, rows), log sum exp(z) of each part, saved; 0 where the row is not in it
// backward (Exact), from (x, table, bias, clusters, cluster_bias, labels, lse, dsum), with
// P = dsum (softmax - (1 - s) onehot - s / classes) of each part's rows and classes:
//     dx = P T    dT = P^T x    db = the sums of P over rows;    outputs in the order of the inputs
// linear_cross_entropy_step is both at once, for a training that knows dsum before the loss: from
// (x, table, bias, clusters, cluster_bias, labels, dsum) the three outputs and then the gradients,
// by the same formulas, with lse as it is saved. A kernel can then keep the logits of some rows
// until it has their gradient. The pass fuse_loss_backward makes it; it has no gradient of its own.
// x, T and the clusters may be bf16; everything else is float32 then, but for P, which is rounded
// to bf16 as a factor of dx and dT, not in db.
// errors: ranks, types and sizes that do not fit; cut-offs that do not ascend within (0, V);
// clusters without cut-offs; a gradient that comes in by nll or lse.
// in place: none.
#pragma once

#include "src/graph/graph.h"

namespace keel {

// Inputs and outputs have these places.
struct LinearLossInput {
  enum Place : int { kX, kTable, kBias, kClusters, kClusterBias, kLabels, kLse, kDsum };
};
struct LinearLossOutput {
  enum Place : int { kSum, kNll, kLse };
};
struct LinearLossGradient {
  enum Place : int { kDx, kDtable, kDbias, kDclusters, kDclusterBias };
};

// The inputs of the step are those of the forward and then dsum; its outputs are those of the
// forward and then the gradients.
struct LinearLossStep {
  static constexpr int kDsumInput = LinearLossInput::kLabels + 1;
  static constexpr int kFirstGradient = LinearLossOutput::kLse + 1;
};

struct LinearLossAttrs {
  std::vector<std::int64_t> cutoffs = {};
  double label_smoothing = 0;      // in [0, 1]
  std::int64_t ignore_index = -1;  // rows with this label do not count
  static constexpr auto fields() {
    return std::tuple{field("cutoffs", &LinearLossAttrs::cutoffs),
                      field("label_smoothing", &LinearLossAttrs::label_smoothing),
                      field("ignore_index", &LinearLossAttrs::ignore_index)};
  }
};

// The head (index 0) or a cluster: words [first, last) of the table, then so many clusters.
struct LossPart {
  std::int64_t first, last, clusters;
  std::int64_t ignore_index;

  constexpr std::int64_t words() const { return last - first; }
  constexpr std::int64_t classes() const { return words() + clusters; }
  // Whether a row with this label is in the part. The head has every row that counts.
  constexpr bool takes(std::int64_t label) const {
    return label != ignore_index && (first == 0 || (label >= first && label < last));
  }
};
std::vector<LossPart> loss_parts(const LinearLossAttrs& attrs, std::int64_t vocabulary);
// The class of a label in a part that takes it; -1 for a label outside of the vocabulary.
std::int64_t class_of(const LinearLossAttrs& attrs, const LossPart& part, std::int64_t label,
                      std::int64_t vocabulary);

extern const OpInfo kLinearCrossEntropy, kLinearCrossEntropyBackward, kLinearCrossEntropyStep;

namespace ops {

struct LinearLossOperands {
  Value x, table, bias = {};
  Value clusters = {}, cluster_bias = {};
  Value labels;
};
struct LinearLoss {
  Value sum, nll;
};
LinearLoss linear_cross_entropy(Graph& g, const LinearLossOperands& operands,
                                const LinearLossAttrs& attrs = {});

}  // namespace ops
}  // namespace keel
