#include "src/ops/norm/layer_norm.h"

#include "src/ops/norm/row_norm.h"

namespace keel {
namespace {

using In = LayerNormInput;
using Out = LayerNormOutput;
using BackIn = LayerNormBackwardInput;
using BackOut = LayerNormGradient;
using Types = std::vector<TensorType>;

RowSizes expect_sizes(const InferContext& c, const LayerNormAttrs& attrs) {
  const RowSizes sizes = expect_rows(c, attrs.axes);
  expect_statistic(c, attrs.statistic(), sizes.width);
  return sizes;
}

Types infer(const InferContext& c) {
  const auto& attrs = c.attrs.as<LayerNormAttrs>();
  const RowSizes sizes = expect_sizes(c, attrs);
  expect_affine(c, In::kGain, In::kBias, row_shape(c.shape(In::kX), attrs.axes));
  const TensorType per_row{wide_type(c), Shape{sizes.rows}};
  return {wide_x(c), per_row, per_row};
}

Types infer_backward(const InferContext& c) {
  const auto& attrs = c.attrs.as<LayerNormBackwardAttrs>();
  const Shape rows{expect_sizes(c, attrs).rows};
  const TensorType x = wide_x(c);
  const Shape parameter = row_shape(x.shape, attrs.axes);
  if (c.has(BackIn::kGain)) c.expect_shape(BackIn::kGain, "gain", parameter);
  for (int place : {BackIn::kMean, BackIn::kRstd}) c.expect_shape(place, "statistic", rows);
  expect_dy(c, BackIn::kDy);
  return {x, gradient_type(c, BackIn::kGain), type_if(attrs.wants_dbias, {x.dtype, parameter})};
}

void backward(BackwardContext& c) {
  const LayerNormBackwardAttrs attrs{c.attrs().as<LayerNormAttrs>(), c.input(In::kBias).valid()};
  const Value d = c.graph.add(kLayerNormBackward,
                              {c.input(In::kX), c.input(In::kGain), c.output(Out::kMean),
                               c.output(Out::kRstd), gradient_like_x(c)},
                              attrs);
  set_gradients(c, d);
}

}  // namespace

const OpInfo kLayerNorm{.name = "layer_norm",
                        .inputs = {"x", "gain", "bias"},
                        .output_names = {"y", "mean", "rstd"},
                        .attrs = LayerNormAttrs{},
                        .infer = infer,
                        .backward = backward,
                        .gradient = GradientKind::kExact,
                        .norm = NormTraits{}};
const OpInfo kLayerNormBackward{.name = "layer_norm_backward",
                                .inputs = {"x", "gain", "mean", "rstd", "dy"},
                                .output_names = {"dx", "dgain", "dbias"},
                                .attrs = LayerNormBackwardAttrs{},
                                .infer = infer_backward,
                                .forward = &kLayerNorm,
                                .in_place = {{BackIn::kDy, BackOut::kDx}}};

namespace ops {

Value layer_norm(Graph& g, Value x, const NormAffine& affine, const LayerNormAttrs& attrs) {
  return g.add(kLayerNorm, {x, affine.gain, affine.bias}, attrs);
}

}  // namespace ops
}  // namespace keel
