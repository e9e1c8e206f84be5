#include "src/ops/norm/group_scaling.h"

namespace keel {
namespace {

using In = GroupScalingInput;
using Out = GroupScalingOutput;
using BackIn = GroupScalingBackwardInput;
using BackOut = GroupScalingGradient;
using Types = std::vector<TensorType>;

// Returns the shape of rstd.
Shape expect_groups(const InferContext& c) {
  const auto& attrs = c.attrs.as<GroupScalingAttrs>();
  expect_scaling(c, attrs);
  const Shape& x = c.shape(In::kX);
  return {x.elements(0, x.rank() - 1), attrs.groups};
}

Types infer(const InferContext& c) { return {wide_x(c), {wide_type(c), expect_groups(c)}}; }

Types infer_backward(const InferContext& c) {
  c.expect_shape(BackIn::kRstd, "rstd", expect_groups(c));
  expect_dy(c, BackIn::kDy);
  return {wide_x(c)};
}

void backward(BackwardContext& c) {
  if (!c.needs(In::kX)) return;
  c.set(In::kX,
        c.graph.add(kGroupScalingBackward,
                    {c.input(In::kX), c.output(Out::kRstd), gradient_like_x(c)}, c.attrs()));
}

}  // namespace

void expect_scaling(const InferContext& c, const GroupScalingAttrs& attrs) {
  const Shape& x = c.shape(NormInput::kX);
  c.expect_floating(NormInput::kX, "x");
  c.expect(x.rank() >= 1 && x.back() >= 1, "x", "(..., features)", x.text());
  c.expect(attrs.groups >= 1 && x.back() % attrs.groups == 0, "groups",
           fmt::format("a divisor of {} features", x.back()), fmt::format("{}", attrs.groups));
  expect_statistic(c, {attrs.eps}, x.back() / attrs.groups);
}

RowSizes scaled_groups(const Shape& x, std::int64_t groups) {
  return {x.elements(0, x.rank() - 1) * groups, x.back() / groups};
}

const OpInfo kGroupScaling{.name = "group_scaling",
                           .inputs = {"x"},
                           .output_names = {"y", "rstd"},
                           .attrs = GroupScalingAttrs{},
                           .infer = infer,
                           .backward = backward,
                           .gradient = GradientKind::kExact,
                           .norm = NormTraits{}};
const OpInfo kGroupScalingBackward{.name = "group_scaling_backward",
                                   .inputs = {"x", "rstd", "dy"},
                                   .output_names = {"dx"},
                                   .attrs = GroupScalingAttrs{},
                                   .infer = infer_backward,
                                   .forward = &kGroupScaling,
                                   .in_place = {{BackIn::kDy, BackOut::kDx}}};

namespace ops {

Value group_scaling(Graph& g, Value x, const GroupScalingAttrs& attrs) {
  return g.add(kGroupScaling, {x}, attrs);
}

}  // namespace ops
}  // namespace keel
