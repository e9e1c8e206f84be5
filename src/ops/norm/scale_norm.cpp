#include "src/ops/norm/scale_norm.h"

#include "src/ops/norm/row_norm.h"

namespace keel {
namespace {

using In = ScaleNormInput;
using Out = ScaleNormOutput;
using BackIn = ScaleNormBackwardInput;
using BackOut = ScaleNormGradient;
using Types = std::vector<TensorType>;

// `gain` is the place of the gain.
RowSizes expect_inputs(const InferContext& c, int gain) {
  const auto& attrs = c.attrs.as<ScaleNormAttrs>();
  const RowSizes sizes = expect_rows(c, attrs.axes);
  expect_statistic(c, {.eps = attrs.eps}, sizes.width);
  if (c.has(gain)) {
    c.expect_shape(gain, "gain", Shape{1});
    c.expect_dtype(gain, "gain", wide_type(c));
  }
  return sizes;
}

Types infer(const InferContext& c) {
  return {wide_x(c), {wide_type(c), Shape{expect_inputs(c, In::kGain).rows}}};
}

Types infer_backward(const InferContext& c) {
  c.expect_shape(BackIn::kRstd, "rstd", Shape{expect_inputs(c, BackIn::kGain).rows});
  expect_dy(c, BackIn::kDy);
  return {wide_x(c), gradient_type(c, BackIn::kGain)};
}

void backward(BackwardContext& c) {
  const Value d = c.graph.add(
      kScaleNormBackward,
      {c.input(In::kX), c.input(In::kGain), c.output(Out::kRstd), gradient_like_x(c)}, c.attrs());
  if (c.needs(In::kX)) c.set(In::kX, d.at(BackOut::kDx));
  if (c.needs(In::kGain)) c.set(In::kGain, d.at(BackOut::kDgain));
}

}  // namespace

const OpInfo kScaleNorm{.name = "scale_norm",
                        .inputs = {"x", "gain"},
                        .output_names = {"y", "rstd"},
                        .attrs = ScaleNormAttrs{},
                        .infer = infer,
                        .backward = backward,
                        .gradient = GradientKind::kExact,
                        .norm = NormTraits{.by_length = true}};
const OpInfo kScaleNormBackward{.name = "scale_norm_backward",
                                .inputs = {"x", "gain", "rstd", "dy"},
                                .output_names = {"dx", "dgain"},
                                .attrs = ScaleNormAttrs{},
                                .infer = infer_backward,
                                .forward = &kScaleNorm,
                                .in_place = {{BackIn::kDy, BackOut::kDx}}};

namespace ops {

Value scale_norm(Graph& g, Value x, Value gain, const ScaleNormAttrs& attrs) {
  return g.add(kScaleNorm, {x, gain}, attrs);
}

Value unit_rows(Graph& g, Value x) { return scale_norm(g, x, {}, {.eps = 1e-12}); }

}  // namespace ops
}  // namespace keel
