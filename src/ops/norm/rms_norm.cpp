#include "src/ops/norm/rms_norm.h"

#include "src/ops/norm/row_norm.h"

namespace keel {
namespace {

using In = RmsNormInput;
using Out = RmsNormOutput;
using BackIn = RmsNormBackwardInput;
using BackOut = RmsNormGradient;
using Types = std::vector<TensorType>;

RowSizes expect_sizes(const InferContext& c, const RmsNormAttrs& attrs) {
  const RowSizes sizes = expect_rows(c, attrs.axes);
  expect_statistic(c, {.eps = attrs.eps}, sizes.width);
  return sizes;
}

Types infer(const InferContext& c) {
  const auto& attrs = c.attrs.as<RmsNormAttrs>();
  const RowSizes sizes = expect_sizes(c, attrs);
  expect_affine(c, In::kGain, In::kBias, row_shape(c.shape(In::kX), attrs.axes));
  return {wide_x(c), {wide_type(c), Shape{sizes.rows}}};
}

Types infer_backward(const InferContext& c) {
  const auto& attrs = c.attrs.as<RmsNormBackwardAttrs>();
  const RowSizes sizes = expect_sizes(c, attrs);
  const TensorType x = wide_x(c);
  const Shape parameter = row_shape(x.shape, attrs.axes);
  if (c.has(BackIn::kGain)) c.expect_shape(BackIn::kGain, "gain", parameter);
  c.expect_shape(BackIn::kRstd, "rstd", Shape{sizes.rows});
  expect_dy(c, BackIn::kDy);
  return {x, gradient_type(c, BackIn::kGain), type_if(attrs.wants_dbias, {x.dtype, parameter})};
}

void backward(BackwardContext& c) {
  const RmsNormBackwardAttrs attrs{c.attrs().as<RmsNormAttrs>(), c.input(In::kBias).valid()};
  const Value d = c.graph.add(
      kRmsNormBackward,
      {c.input(In::kX), c.input(In::kGain), c.output(Out::kRstd), gradient_like_x(c)}, attrs);
  set_gradients(c, d);
}

}  // namespace

const OpInfo kRmsNorm{.name = "rms_norm",
                      .inputs = {"x", "gain", "bias"},
                      .output_names = {"y", "rstd"},
                      .attrs = RmsNormAttrs{},
                      .infer = infer,
                      .backward = backward,
                      .gradient = GradientKind::kExact,
                      .norm = NormTraits{}};
const OpInfo kRmsNormBackward{.name = "rms_norm_backward",
                              .inputs = {"x", "gain", "rstd", "dy"},
                              .output_names = {"dx", "dgain", "dbias"},
                              .attrs = RmsNormBackwardAttrs{},
                              .infer = infer_backward,
                              .forward = &kRmsNorm,
                              .in_place = {{BackIn::kDy, BackOut::kDx}}};

namespace ops {

Value rms_norm(Graph& g, Value x, const NormAffine& affine, const RmsNormAttrs& attrs) {
  return g.add(kRmsNorm, {x, affine.gain, affine.bias}, attrs);
}

}  // namespace ops
}  // namespace keel
