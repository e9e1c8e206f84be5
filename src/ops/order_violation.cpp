#include "src/ops/order_violation.h"

namespace keel {
namespace {

using Types = std::vector<TensorType>;
using In = OrderViolationInput;

void expect_points(const InferContext& c) {
  const Shape& x = c.shape(In::kX);
  c.expect_floating(In::kX, "x");
  c.expect(x.rank() == 2, "x", "(n, width)", x.text());
  c.expect_dtype(In::kY, "y", c.dtype(In::kX));
  const Shape& y = c.shape(In::kY);
  c.expect(y.rank() == 2 && y[1] == x[1], "y", fmt::format("(m, {})", x[1]), y.text());
}

Types infer_order_violation(const InferContext& c) {
  expect_points(c);
  return {{c.dtype(In::kX), {c.shape(In::kX)[0], c.shape(In::kY)[0]}}};
}

Types infer_order_violation_backward(const InferContext& c) {
  expect_points(c);
  c.expect_shape(In::kDe, "de", {c.shape(In::kX)[0], c.shape(In::kY)[0]});
  return {c.input(In::kX), c.input(In::kY)};
}

void backward_order_violation(BackwardContext& c) {
  if (!c.needs(In::kX) && !c.needs(In::kY)) return;
  const Value dx =
      c.graph.add(kOrderViolationBackward, {c.input(In::kX), c.input(In::kY), c.grad()});
  if (c.needs(In::kX)) c.set(In::kX, dx);
  if (c.needs(In::kY)) c.set(In::kY, dx.at(OrderViolationOutput::kDy));
}

}  // namespace

const OpInfo kOrderViolation{.name = "order_violation",
                             .inputs = {"x", "y"},
                             .infer = infer_order_violation,
                             .backward = backward_order_violation,
                             .gradient = GradientKind::kExact};
const OpInfo kOrderViolationBackward{.name = "order_violation_backward",
                                     .inputs = {"x", "y", "de"},
                                     .infer = infer_order_violation_backward};

OrderViolationSizes order_violation_sizes(const Shape& x, const Shape& y) {
  return {x[0], y[0], x[1]};
}

namespace ops {

Value order_violation(Graph& g, Value x, Value y) { return g.add(kOrderViolation, {x, y}); }

}  // namespace ops
}  // namespace keel
