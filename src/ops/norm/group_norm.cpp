#include "src/ops/norm/group_norm.h"

#include "src/ops/norm/sizes.h"

namespace keel {
namespace {

using In = GroupNormInput;
using Out = GroupNormOutput;
using BackIn = GroupNormBackwardInput;
using BackOut = GroupNormGradient;
using Types = std::vector<TensorType>;

GroupSizes expect_groups(const InferContext& c, const GroupNormAttrs& attrs) {
  const Shape& x = c.shape(In::kX);
  c.expect_floating(In::kX, "x");
  c.expect(x.rank() == 2 || x.rank() == 4, "x", "(rows, channels) or (n, channels, h, w)",
           x.text());
  c.expect(attrs.groups >= 1 && x[1] % attrs.groups == 0, "groups",
           fmt::format("a divisor of {} channels", x[1]), fmt::format("{}", attrs.groups));
  const GroupSizes sizes = group_sizes(x, attrs.groups);
  c.expect(sizes.width() >= 1, "x", "at least one element a group", x.text());
  expect_statistic(c, attrs.statistic(), sizes.width());
  return sizes;
}

Types infer(const InferContext& c) {
  const GroupSizes sizes = expect_groups(c, c.attrs.as<GroupNormAttrs>());
  expect_affine(c, In::kGain, In::kBias, {sizes.groups * sizes.channels});
  const TensorType statistic{wide_type(c), {sizes.samples, sizes.groups}};
  return {wide_x(c), statistic, statistic};
}

Types infer_backward(const InferContext& c) {
  const auto& attrs = c.attrs.as<GroupNormBackwardAttrs>();
  const GroupSizes sizes = expect_groups(c, attrs);
  const TensorType x = wide_x(c);
  const Shape parameter{sizes.groups * sizes.channels};
  if (c.has(BackIn::kGain)) c.expect_shape(BackIn::kGain, "gain", parameter);
  for (int place : {BackIn::kMean, BackIn::kRstd}) {
    c.expect_shape(place, "statistic", {sizes.samples, sizes.groups});
  }
  expect_dy(c, BackIn::kDy);
  return {x, gradient_type(c, BackIn::kGain), type_if(attrs.wants_dbias, {x.dtype, parameter})};
}

void backward(BackwardContext& c) {
  const GroupNormBackwardAttrs attrs{c.attrs().as<GroupNormAttrs>(), c.input(In::kBias).valid()};
  const Value d = c.graph.add(kGroupNormBackward,
                              {c.input(In::kX), c.input(In::kGain), c.output(Out::kMean),
                               c.output(Out::kRstd), gradient_like_x(c)},
                              attrs);
  set_gradients(c, d);
}

}  // namespace

const OpInfo kGroupNorm{.name = "group_norm",
                        .inputs = {"x", "gain", "bias"},
                        .output_names = {"y", "mean", "rstd"},
                        .attrs = GroupNormAttrs{},
                        .infer = infer,
                        .backward = backward,
                        .gradient = GradientKind::kExact,
                        .norm = NormTraits{.groups = NormGroups::kParts}};
const OpInfo kGroupNormBackward{.name = "group_norm_backward",
                                .inputs = {"x", "gain", "mean", "rstd", "dy"},
                                .output_names = {"dx", "dgain", "dbias"},
                                .attrs = GroupNormBackwardAttrs{},
                                .infer = infer_backward,
                                .forward = &kGroupNorm,
                                .in_place = {{BackIn::kDy, BackOut::kDx}}};

namespace ops {

Value group_norm(Graph& g, Value x, const NormAffine& affine, const GroupNormAttrs& attrs) {
  return g.add(kGroupNorm, {x, affine.gain, affine.bias}, attrs);
}

}  // namespace ops
}  // namespace keel
