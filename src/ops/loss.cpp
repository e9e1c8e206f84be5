#include "src/ops/loss.h"

namespace keel {
namespace {

using Types = std::vector<TensorType>;
using In = CrossEntropyInput;
using Out = CrossEntropyOutput;

void expect_logits_and_labels(const InferContext& c) {
  const auto& attrs = c.attrs.as<CrossEntropyAttrs>();
  const Shape& logits = c.shape(In::kLogits);
  c.expect_floating(In::kLogits, "logits");
  c.expect(logits.rank() == 2 && logits[1] >= 1, "logits", "(rows, classes >= 1)", logits.text());
  c.expect_dtype(In::kLabels, "labels", DType::kI32);
  c.expect_shape(In::kLabels, "labels", Shape{logits[0]});
  const double s = attrs.label_smoothing;
  c.expect(s >= 0 && s <= 1, "label_smoothing", "in [0, 1]", fmt::format("{}", s));
}

Types infer_cross_entropy(const InferContext& c) {
  expect_logits_and_labels(c);
  const TensorType scalar{c.dtype(In::kLogits), {}};
  return {scalar, scalar, {scalar.dtype, c.shape(In::kLabels)}, scalar};
}

Types infer_cross_entropy_backward(const InferContext& c) {
  expect_logits_and_labels(c);
  c.expect_shape(In::kLogSumExp, "log_sum_exp", c.shape(In::kLabels));
  c.expect_dtype(In::kLogSumExp, "log_sum_exp", c.dtype(In::kLogits));
  for (int place : {In::kCount, In::kDmean, In::kDsum}) {
    if (!c.has(place)) continue;
    c.expect_shape(place, "scalar", {});
    c.expect_dtype(place, "scalar", c.dtype(In::kLogits));
  }
  return {c.input(In::kLogits)};
}

Types infer_bce(const InferContext& c) {
  using Bce = BceInput;
  const TensorType scalar{c.dtype(Bce::kLogits), {}};
  c.expect_floating(Bce::kLogits, "logits");
  c.expect_dtype(Bce::kTargets, "targets", scalar.dtype);
  c.expect_shape(Bce::kTargets, "targets", c.shape(Bce::kLogits));
  return {scalar, scalar};
}

Types infer_bce_backward(const InferContext& c) {
  c.expect_shape(BceInput::kTargets, "targets", c.shape(BceInput::kLogits));
  return {c.input(BceInput::kLogits)};
}

Types infer_errors(const InferContext& c) {
  expect_logits_and_labels(c);
  return {{c.dtype(In::kLogits), {}}};
}

void backward_cross_entropy(BackwardContext& c) {
  if (!c.needs(In::kLogits)) return;
  c.set(In::kLogits,
        c.graph.add(kCrossEntropyBackward,
                    {c.input(In::kLogits), c.input(In::kLabels), c.output(Out::kLogSumExp),
                     c.output(Out::kCount), c.grad(Out::kMean), c.grad(Out::kSum)},
                    c.attrs()));
}

void backward_bce(BackwardContext& c) {
  using Bce = BceInput;
  if (!c.needs(Bce::kLogits)) return;
  c.set(Bce::kLogits,
        c.graph.add(kBceWithLogitsBackward, {c.input(Bce::kLogits), c.input(Bce::kTargets),
                                             c.grad(BceOutput::kMean), c.grad(BceOutput::kSum)}));
}

}  // namespace

const OpInfo kCrossEntropy{.name = "cross_entropy",
                           .inputs = {"logits", {"labels", DType::kI32}},
                           .attrs = CrossEntropyAttrs{},
                           .infer = infer_cross_entropy,
                           .backward = backward_cross_entropy,
                           .gradient = GradientKind::kExact};
const OpInfo kCrossEntropyBackward{
    .name = "cross_entropy_backward",
    .inputs = {"logits", {"labels", DType::kI32}, "log_sum_exp", "count", "dmean", "dsum"},
    .attrs = CrossEntropyAttrs{},
    .infer = infer_cross_entropy_backward,
    .in_place = {{In::kLogits, 0}}};
const OpInfo kBceWithLogits{.name = "bce_with_logits",
                            .inputs = {"logits", "targets"},
                            .infer = infer_bce,
                            .backward = backward_bce,
                            .gradient = GradientKind::kExact};
const OpInfo kBceWithLogitsBackward{.name = "bce_with_logits_backward",
                                    .inputs = {"logits", "targets", "dmean", "dsum"},
                                    .infer = infer_bce_backward,
                                    .in_place = {{BceInput::kLogits, 0}}};
const OpInfo kClassificationErrors{.name = "classification_errors",
                                   .inputs = {"logits", {"labels", DType::kI32}},
                                   .attrs = CrossEntropyAttrs{},
                                   .infer = infer_errors};

namespace ops {

Loss cross_entropy(Graph& g, Value logits, Value labels, const CrossEntropyAttrs& attrs) {
  const Value mean = g.add(kCrossEntropy, {logits, labels}, attrs);
  return {mean, mean.at(Out::kSum)};
}

Loss bce_with_logits(Graph& g, Value logits, Value targets) {
  const Value mean = g.add(kBceWithLogits, {logits, targets});
  return {mean, mean.at(BceOutput::kSum)};
}

Value classification_errors(Graph& g, Value logits, Value labels, std::int64_t ignore_index) {
  return g.add(kClassificationErrors, {logits, labels},
               CrossEntropyAttrs{.ignore_index = ignore_index});
}

}  // namespace ops
}  // namespace keel
