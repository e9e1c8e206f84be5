// Losses on logits, and the count of wrong classifications.
//
// cross_entropy: rows with label == ignore_index do not count. With log p = log_softmax(logits),
// s = label_smoothing and K classes, the loss of a row is
//     (1 - s) * -log p[label] + s * mean_k(-log p[k])
//   logits (rows, classes) floating; labels (rows) i32
//   outputs: mean (), sum (), log_sum_exp (rows) saved, count () of the rows that count
//   With no row that counts, mean and sum are 0. A label outside [0, classes) makes both NaN.
// backward: dlogits = (dmean / count + dsum) * (softmax - (1 - s) onehot - s / K), 0 where ignored.
//
// bce_with_logits: loss = max(x, 0) - x t + log(1 + exp(-|x|)), element-wise, then mean and sum.
//   logits x and targets t of one shape; outputs mean (), sum (). Targets get no gradient.
// backward: dx = (dmean / elements + dsum) * (sigmoid(x) - t).
//
// classification_errors: count () of rows whose first largest logit is not at the label; rows with
//   label == ignore_index do not count. Not differentiable.
#pragma once

#include "src/graph/graph.h"

namespace keel {

// Places of inputs and outputs. A backward has the inputs of its forward and more;
// classification_errors has the first two inputs of cross_entropy.
struct CrossEntropyInput {
  enum Place : int { kLogits, kLabels, kLogSumExp, kCount, kDmean, kDsum };
};
struct CrossEntropyOutput {
  enum Place : int { kMean, kSum, kLogSumExp, kCount };
};
struct BceInput {
  enum Place : int { kLogits, kTargets, kDmean, kDsum };
};
struct BceOutput {
  enum Place : int { kMean, kSum };
};

struct CrossEntropyAttrs {
  double label_smoothing = 0;      // in [0, 1]
  std::int64_t ignore_index = -1;  // rows with this label do not count
  static constexpr auto fields() {
    return std::tuple{field("label_smoothing", &CrossEntropyAttrs::label_smoothing),
                      field("ignore_index", &CrossEntropyAttrs::ignore_index)};
  }
};

extern const OpInfo kCrossEntropy;
// (logits, labels, log_sum_exp, count, dmean or absent, dsum or absent) -> dlogits
extern const OpInfo kCrossEntropyBackward;
extern const OpInfo kBceWithLogits;
// (logits, targets, dmean or absent, dsum or absent) -> dlogits
extern const OpInfo kBceWithLogitsBackward;
extern const OpInfo kClassificationErrors;

namespace ops {

struct Loss {
  Value mean, sum;
};
Loss cross_entropy(Graph& g, Value logits, Value labels, const CrossEntropyAttrs& attrs = {});
Loss bce_with_logits(Graph& g, Value logits, Value targets);
Value classification_errors(Graph& g, Value logits, Value labels, std::int64_t ignore_index = -1);

}  // namespace ops
}  // namespace keel
