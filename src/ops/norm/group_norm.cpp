#include "src/ops/norm/group_norm.h"

namespace keel {
namespace {

using Types = std::vector<TensorType>;

GroupSizes expect_groups(const InferContext& c) {
  const auto& attrs = c.attrs.as<GroupNormAttrs>();
  const Shape& x = c.shape(0);
  c.expect_floating(0, "x");
  c.expect(x.rank() == 2 || x.rank() == 4, "x", "(rows, channels) or (n, channels, h, w)",
           x.text());
  c.expect(attrs.groups >= 1 && x[1] % attrs.groups == 0, "groups",
           fmt::format("a divisor of {} channels", x[1]), fmt::format("{}", attrs.groups));
  const GroupSizes sizes = group_sizes(x, attrs.groups);
  c.expect(sizes.width() >= 1, "x", "at least one element a group", x.text());
  expect_statistic(c, attrs.statistic(), sizes.width());
  return sizes;
}

// (x, gain or absent, bias or absent)
Types infer(const InferContext& c) {
  const GroupSizes sizes = expect_groups(c);
  expect_affine(c, 1, {sizes.groups * sizes.channels});
  const TensorType statistic{c.dtype(0), {sizes.samples, sizes.groups}};
  return {c.input(0), statistic, statistic};
}

// (x, gain or absent, mean, rstd, dy) -> (dx, dgain, dbias)
Types infer_backward(const InferContext& c) {
  const GroupSizes sizes = expect_groups(c);
  const Shape parameter{sizes.groups * sizes.channels};
  if (c.has(1)) c.expect_shape(1, "gain", parameter);
  for (int i : {2, 3}) c.expect_shape(i, "statistic", {sizes.samples, sizes.groups});
  c.expect_shape(4, "dy", c.shape(0));
  const bool has_bias = c.attrs.as<GroupNormAttrs>().has_bias;
  const TensorType dbias = has_bias ? TensorType{c.dtype(0), parameter} : absent_type(c.dtype(0));
  return {c.input(0), gradient_type(c, 1), dbias};
}

void backward(BackwardContext& c) {
  GroupNormAttrs attrs = c.attrs().as<GroupNormAttrs>();
  attrs.has_bias = c.input(2).valid();
  const Value dx = c.graph.add(kGroupNormBackward,
                               {c.input(0), c.input(1), c.output(1), c.output(2), c.grad()}, attrs);
  for (int i : {0, 1, 2}) {
    if (c.needs(i)) c.set(i, dx.at(i));
  }
}

}  // namespace

GroupSizes group_sizes(const Shape& x, std::int64_t groups) {
  return {x[0], groups, x[1] / groups, x.elements(2, x.rank())};
}

const OpInfo kGroupNorm{
    .name = "group_norm", .infer = infer, .backward = backward, .gradient = GradientKind::kExact};
const OpInfo kGroupNormBackward{
    .name = "group_norm_backward", .infer = infer_backward, .in_place = {{4, 0}}};

namespace ops {

Value group_norm(Graph& g, Value x, const NormAffine& affine, const GroupNormAttrs& attrs) {
  return g.add(kGroupNorm, {x, affine.gain, affine.bias}, attrs);
}

}  // namespace ops
}  // namespace keel
