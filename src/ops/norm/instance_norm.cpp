#include "src/ops/norm/instance_norm.h"

namespace keel {
namespace {

using In = InstanceNormInput;
using Out = InstanceNormOutput;
using BackIn = InstanceNormBackwardInput;
using BackOut = InstanceNormGradient;
using Types = std::vector<TensorType>;

// `mask` is the place of the mask. Returns the type of a statistic.
TensorType expect_sequences(const InferContext& c, const InstanceNormAttrs& attrs, int mask) {
  const Shape& x = c.shape(In::kX);
  c.expect_floating(In::kX, "x");
  c.expect(x.rank() == 3, "x", "(n, steps, channels)", x.text());
  const SequenceSizes sizes = sequence_sizes(x);
  c.expect(sizes.samples >= 1 && sizes.steps >= 1, "x", "at least one sample and step", x.text());
  expect_statistic(c, {attrs.eps}, sizes.steps);
  if (c.has(mask)) {
    c.expect_shape(mask, "mask", {sizes.samples, sizes.steps});
    c.expect_dtype(mask, "mask", DType::kU8);
  }
  return {wide_type(c), {sizes.samples, sizes.channels}};
}

Types infer(const InferContext& c) {
  const TensorType statistic = expect_sequences(c, c.attrs.as<InstanceNormAttrs>(), In::kMask);
  expect_affine(c, In::kGain, In::kBias, {statistic.shape[1]});
  return {wide_x(c), statistic, statistic};
}

Types infer_backward(const InferContext& c) {
  const auto& attrs = c.attrs.as<InstanceNormBackwardAttrs>();
  const TensorType statistic = expect_sequences(c, attrs, BackIn::kMask);
  const TensorType x = wide_x(c);
  const Shape channels{statistic.shape[1]};
  if (c.has(BackIn::kGain)) c.expect_shape(BackIn::kGain, "gain", channels);
  c.expect_shape(BackIn::kMean, "mean", statistic.shape);
  c.expect_shape(BackIn::kRstd, "rstd", statistic.shape);
  expect_dy(c, BackIn::kDy);
  return {x, gradient_type(c, BackIn::kGain), type_if(attrs.wants_dbias, {x.dtype, channels})};
}

void backward(BackwardContext& c) {
  const InstanceNormBackwardAttrs attrs{c.attrs().as<InstanceNormAttrs>(),
                                        c.input(In::kBias).valid()};
  const Value d = c.graph.add(kInstanceNormBackward,
                              {c.input(In::kX), c.input(In::kGain), c.output(Out::kMean),
                               c.output(Out::kRstd), gradient_like_x(c), c.input(In::kMask)},
                              attrs);
  set_gradients(c, d);
}

}  // namespace

const OpInfo kInstanceNorm{.name = "instance_norm",
                           .inputs = {"x", "gain", "bias", {"mask", DType::kU8}},
                           .output_names = {"y", "mean", "rstd"},
                           .attrs = InstanceNormAttrs{},
                           .infer = infer,
                           .backward = backward,
                           .gradient = GradientKind::kExact,
                           .norm = NormTraits{.groups = NormGroups::kSequences}};
const OpInfo kInstanceNormBackward{
    .name = "instance_norm_backward",
    .inputs = {"x", "gain", "mean", "rstd", "dy", {"mask", DType::kU8}},
    .output_names = {"dx", "dgain", "dbias"},
    .attrs = InstanceNormBackwardAttrs{},
    .infer = infer_backward,
    .forward = &kInstanceNorm,
    .in_place = {{BackIn::kDy, BackOut::kDx}}};

namespace ops {

Value instance_norm(Graph& g, Value x, const NormAffine& affine, Value mask,
                    const InstanceNormAttrs& attrs) {
  return g.add(kInstanceNorm, {x, affine.gain, affine.bias, mask}, attrs);
}

}  // namespace ops
}  // namespace keel
