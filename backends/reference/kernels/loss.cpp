// Losses on logits, and the count of wrong classifications.
#include "src/ops/loss.h"

#include <algorithm>
#include <cmath>

#include "backends/reference/kernels/kernels.h"
#include "src/ops/elementwise.h"

namespace keel::reference {
namespace {

using In = CrossEntropyInput;

Matrix logits_of(const TensorRef& t) { return matrix(t, t.type.shape[0], t.type.shape[1]); }

double& scalar(const TensorRef& t) { return *t.as<double>(); }

// The gradient that reaches every term: dmean / count + dsum, either of which may be absent.
double term_gradient(const TensorRef& dmean, const TensorRef& dsum, double count) {
  return (dmean ? scalar(dmean) / count : 0) + (dsum ? scalar(dsum) : 0);
}

template <class Row>
double log_sum_exp(const Row& x) {
  const double largest = x.maxCoeff();
  return largest + std::log((x.array() - largest).exp().sum());
}

// (1 - s) * -log p[label] + s * mean_k(-log p[k]);  surprise = -log p (classes)
double row_loss(const Eigen::RowVectorXd& surprise, std::int32_t label, double smoothing) {
  if (label < 0 || label >= surprise.size()) return NAN;
  const double own = (1 - smoothing) * surprise[label];
  // A class of probability 0 has infinite surprise; it must not matter without smoothing.
  return smoothing == 0 ? own : own + smoothing * surprise.mean();
}

void cross_entropy(const Binding& b, const CrossEntropyAttrs& attrs) {
  using Out = CrossEntropyOutput;
  const Matrix logits = logits_of(b.inputs[In::kLogits]);
  const std::int32_t* labels = b.inputs[In::kLabels].as<std::int32_t>();
  Vector saved = vector(b.outputs[Out::kLogSumExp]);
  double total = 0, count = 0;
  for (Eigen::Index row = 0; row < logits.rows(); ++row) {
    saved[row] = log_sum_exp(logits.row(row));
    if (labels[row] == attrs.ignore_index) continue;
    total += row_loss(saved[row] - logits.row(row).array(), labels[row], attrs.label_smoothing);
    ++count;
  }
  scalar(b.outputs[Out::kMean]) = count > 0 ? total / count : 0;
  scalar(b.outputs[Out::kSum]) = total;
  scalar(b.outputs[Out::kCount]) = count;
}

// dlogits = (dmean / count + dsum) * (softmax - (1 - s) onehot - s / K), 0 where ignored.
void cross_entropy_backward(const Binding& b, const CrossEntropyAttrs& attrs) {
  const Matrix logits = logits_of(b.inputs[In::kLogits]);
  const std::int32_t* labels = b.inputs[In::kLabels].as<std::int32_t>();
  const Vector saved = vector(b.inputs[In::kLogSumExp]);
  const double dterm =
      term_gradient(b.inputs[In::kDmean], b.inputs[In::kDsum], scalar(b.inputs[In::kCount]));
  const double s = attrs.label_smoothing, classes = double(logits.cols());
  Matrix dlogits = logits_of(b.outputs[0]);
  for (Eigen::Index row = 0; row < logits.rows(); ++row) {
    const std::int32_t label = labels[row];
    if (label == attrs.ignore_index) {
      dlogits.row(row).setZero();
      continue;
    }
    dlogits.row(row) = (logits.row(row).array() - saved[row]).exp() - s / classes;
    if (label >= 0 && label < logits.cols()) dlogits(row, label) -= 1 - s;
    dlogits.row(row) *= dterm;
  }
}

// softplus(x) - x t, which is max(x, 0) - x t + log(1 + exp(-|x|)).
void bce_with_logits(const Binding& b) {
  using Bce = BceInput;
  const Vector x = vector(b.inputs[Bce::kLogits]), t = vector(b.inputs[Bce::kTargets]);
  double total = 0;
  for (Eigen::Index e = 0; e < x.size(); ++e) {
    total += evaluate(EwCode::kSoftplus, {x[e]}, {}) - x[e] * t[e];
  }
  scalar(b.outputs[BceOutput::kMean]) = total / double(x.size());
  scalar(b.outputs[BceOutput::kSum]) = total;
}

// dx = (dmean / elements + dsum) * (sigmoid(x) - t)
void bce_with_logits_backward(const Binding& b) {
  using Bce = BceInput;
  const Vector x = vector(b.inputs[Bce::kLogits]), t = vector(b.inputs[Bce::kTargets]);
  Vector dx = vector(b.outputs[0]);
  const double dterm = term_gradient(b.inputs[Bce::kDmean], b.inputs[Bce::kDsum], double(x.size()));
  for (Eigen::Index e = 0; e < x.size(); ++e) {
    dx[e] = dterm * (evaluate(EwCode::kSigmoid, {x[e]}, {}) - t[e]);
  }
}

void classification_errors(const Binding& b, std::int64_t ignore_index) {
  const Matrix logits = logits_of(b.inputs[In::kLogits]);
  const std::int32_t* labels = b.inputs[In::kLabels].as<std::int32_t>();
  double errors = 0;
  for (Eigen::Index row = 0; row < logits.rows(); ++row) {
    const double* first = &logits(row, 0);
    const auto guess = std::max_element(first, first + logits.cols()) - first;
    const bool is_wrong = logits.row(row).hasNaN() || guess != labels[row];
    if (labels[row] != ignore_index && is_wrong) ++errors;
  }
  scalar(b.outputs[0]) = errors;
}

}  // namespace

Prepared prepare_cross_entropy(const NodeContext& context) {
  const auto attrs = context.attrs<CrossEntropyAttrs>();
  return kernel_of([=](const Binding& b) { cross_entropy(b, attrs); });
}

Prepared prepare_cross_entropy_backward(const NodeContext& context) {
  const auto attrs = context.attrs<CrossEntropyAttrs>();
  return kernel_of([=](const Binding& b) { cross_entropy_backward(b, attrs); });
}

Prepared prepare_bce_with_logits(const NodeContext&) { return kernel_of(bce_with_logits); }
Prepared prepare_bce_with_logits_backward(const NodeContext&) {
  return kernel_of(bce_with_logits_backward);
}

Prepared prepare_classification_errors(const NodeContext& context) {
  const std::int64_t ignore_index = context.attrs<CrossEntropyAttrs>().ignore_index;
  return kernel_of([=](const Binding& b) { classification_errors(b, ignore_index); });
}

}  // namespace keel::reference
