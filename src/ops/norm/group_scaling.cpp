#include "src/ops/norm/group_scaling.h"

namespace keel {
namespace {

using Types = std::vector<TensorType>;

// The shape of rrms.
Shape expect_groups(const InferContext& c) {
  const auto& attrs = c.attrs.as<GroupScalingAttrs>();
  expect_scaling(c, attrs);
  const Shape& x = c.shape(0);
  return {x.elements(0, x.rank() - 1), attrs.groups};
}

Types infer(const InferContext& c) { return {c.input(0), {c.dtype(0), expect_groups(c)}}; }

// (x, rrms, dy) -> dx
Types infer_backward(const InferContext& c) {
  c.expect_shape(1, "rrms", expect_groups(c));
  c.expect_shape(2, "dy", c.shape(0));
  return {c.input(0)};
}

void backward(BackwardContext& c) {
  if (!c.needs(0)) return;
  c.set(0, c.graph.add(kGroupScalingBackward, {c.input(0), c.output(1), c.grad()}, c.attrs()));
}

}  // namespace

void expect_scaling(const InferContext& c, const GroupScalingAttrs& attrs) {
  const Shape& x = c.shape(0);
  c.expect_floating(0, "x");
  c.expect(x.rank() >= 1 && x.back() >= 1, "x", "(..., features)", x.text());
  c.expect(attrs.groups >= 1 && x.back() % attrs.groups == 0, "groups",
           fmt::format("a divisor of {} features", x.back()), fmt::format("{}", attrs.groups));
  expect_statistic(c, {attrs.eps}, x.back() / attrs.groups);
}

RowSizes scaled_groups(const Shape& x, std::int64_t groups) {
  return {x.elements(0, x.rank() - 1) * groups, x.back() / groups};
}

const OpInfo kGroupScaling{.name = "group_scaling",
                           .infer = infer,
                           .backward = backward,
                           .gradient = GradientKind::kExact};
const OpInfo kGroupScalingBackward{
    .name = "group_scaling_backward", .infer = infer_backward, .in_place = {{2, 0}}};

namespace ops {

Value group_scaling(Graph& g, Value x, const GroupScalingAttrs& attrs) {
  return g.add(kGroupScaling, {x}, attrs);
}

}  // namespace ops
}  // namespace keel
