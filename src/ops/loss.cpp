#include "src/ops/loss.h"

namespace keel {
namespace {

using Types = std::vector<TensorType>;

void expect_logits_and_labels(const InferContext& c) {
  const auto& attrs = c.attrs.as<CrossEntropyAttrs>();
  c.expect_floating(0, "logits");
  c.expect(c.shape(0).rank() == 2 && c.shape(0)[1] >= 1, "logits", "(rows, classes >= 1)",
           c.shape(0).text());
  c.expect_dtype(1, "labels", DType::kI32);
  c.expect_shape(1, "labels", Shape{c.shape(0)[0]});
  const double s = attrs.label_smoothing;
  c.expect(s >= 0 && s <= 1, "label_smoothing", "in [0, 1]", fmt::format("{}", s));
}

Types infer_cross_entropy(const InferContext& c) {
  expect_logits_and_labels(c);
  const TensorType scalar{c.dtype(0), {}};
  return {scalar, scalar, {c.dtype(0), Shape{c.shape(0)[0]}}, scalar};
}

Types infer_cross_entropy_backward(const InferContext& c) {
  expect_logits_and_labels(c);
  c.expect_shape(2, "log_sum_exp", c.shape(1));
  for (int i = 3; i < 6; ++i) {
    if (c.has(i)) c.expect_shape(i, "scalar", {});
  }
  return {c.input(0)};
}

Types infer_bce(const InferContext& c) {
  c.expect_floating(0, "logits");
  c.expect_dtype(1, "targets", c.dtype(0));
  c.expect_shape(1, "targets", c.shape(0));
  return {{c.dtype(0), {}}, {c.dtype(0), {}}};
}

Types infer_bce_backward(const InferContext& c) {
  c.expect_shape(1, "targets", c.shape(0));
  return {c.input(0)};
}

Types infer_errors(const InferContext& c) {
  expect_logits_and_labels(c);
  return {{c.dtype(0), {}}};
}

void backward_cross_entropy(BackwardContext& c) {
  if (!c.needs(0)) return;
  c.set(0, c.graph.add(kCrossEntropyBackward,
                       {c.input(0), c.input(1), c.output(2), c.output(3), c.grad(0), c.grad(1)},
                       c.attrs()));
}

void backward_bce(BackwardContext& c) {
  if (!c.needs(0)) return;
  c.set(0, c.graph.add(kBceWithLogitsBackward, {c.input(0), c.input(1), c.grad(0), c.grad(1)}));
}

}  // namespace

const OpInfo kCrossEntropy{.name = "cross_entropy",
                           .infer = infer_cross_entropy,
                           .backward = backward_cross_entropy,
                           .gradient = GradientKind::kExact};
const OpInfo kCrossEntropyBackward{
    .name = "cross_entropy_backward", .infer = infer_cross_entropy_backward, .in_place = {{0, 0}}};
const OpInfo kBceWithLogits{.name = "bce_with_logits",
                            .infer = infer_bce,
                            .backward = backward_bce,
                            .gradient = GradientKind::kExact};
const OpInfo kBceWithLogitsBackward{
    .name = "bce_with_logits_backward", .infer = infer_bce_backward, .in_place = {{0, 0}}};
const OpInfo kClassificationErrors{.name = "classification_errors", .infer = infer_errors};

namespace ops {

Loss cross_entropy(Graph& g, Value logits, Value labels, const CrossEntropyAttrs& attrs) {
  const Value mean = g.add(kCrossEntropy, {logits, labels}, attrs);
  return {mean, mean.at(1)};
}

Loss bce_with_logits(Graph& g, Value logits, Value targets) {
  const Value mean = g.add(kBceWithLogits, {logits, targets});
  return {mean, mean.at(1)};
}

Value classification_errors(Graph& g, Value logits, Value labels, std::int64_t ignore_index) {
  return g.add(kClassificationErrors, {logits, labels},
               CrossEntropyAttrs{.ignore_index = ignore_index});
}

}  // namespace ops
}  // namespace keel
