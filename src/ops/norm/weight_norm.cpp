#include "src/ops/norm/weight_norm.h"

namespace keel {
namespace {

using In = WeightNormInput;
using Out = WeightNormOutput;
using BackIn = WeightNormBackwardInput;
using BackOut = WeightNormGradient;
using Types = std::vector<TensorType>;

// Checks v and g, which the backward has in the places of the forward. Returns the type of one
// value a unit.
TensorType expect_weights(const InferContext& c) {
  const auto& attrs = c.attrs.as<WeightNormAttrs>();
  const Shape& v = c.shape(In::kV);
  c.expect_floating(In::kV, "v");
  c.expect(attrs.by_column ? v.rank() == 2 : v.rank() >= 2, "v",
           attrs.by_column ? "(in, out)" : "(out, ...)", v.text());
  expect_statistic(c, {attrs.eps}, 1);
  const ColumnSizes sizes = weight_sizes(v, attrs);
  c.expect(sizes.count() >= 1, "v", "at least one weight a unit", v.text());
  const TensorType type{c.dtype(In::kV), {sizes.channels}};
  c.expect_shape(In::kG, "g", type.shape);
  c.expect_dtype(In::kG, "g", type.dtype);
  return type;
}

Types infer(const InferContext& c) {
  const TensorType per_unit = expect_weights(c);
  return {c.input(In::kV), per_unit};
}

Types infer_backward(const InferContext& c) {
  const TensorType per_unit = expect_weights(c);
  c.expect_shape(BackIn::kRstd, "rstd", per_unit.shape);
  c.expect_shape(BackIn::kDw, "dw", c.shape(BackIn::kV));
  return {c.input(BackIn::kV), per_unit};
}

void backward(BackwardContext& c) {
  const Value d =
      c.graph.add(kWeightNormBackward,
                  {c.input(In::kV), c.input(In::kG), c.output(Out::kRstd), c.grad()}, c.attrs());
  if (c.needs(In::kV)) c.set(In::kV, d.at(BackOut::kDv));
  if (c.needs(In::kG)) c.set(In::kG, d.at(BackOut::kDg));
}

}  // namespace

ColumnSizes weight_sizes(const Shape& v, const WeightNormAttrs& attrs) {
  if (attrs.by_column) return {v[0], v[1], 1};
  return {1, v[0], v.elements(1, v.rank())};
}

const OpInfo kWeightNorm{.name = "weight_norm",
                         .inputs = {"v", "g"},
                         .output_names = {"w", "rstd"},
                         .attrs = WeightNormAttrs{},
                         .infer = infer,
                         .backward = backward,
                         .gradient = GradientKind::kExact};
const OpInfo kWeightNormBackward{.name = "weight_norm_backward",
                                 .inputs = {"v", "g", "rstd", "dw"},
                                 .output_names = {"dv", "dg"},
                                 .attrs = WeightNormAttrs{},
                                 .infer = infer_backward,
                                 .forward = &kWeightNorm,
                                 .in_place = {{BackIn::kDw, BackOut::kDv}}};

namespace ops {

Value weight_norm(Graph& g, Value v, Value length, const WeightNormAttrs& attrs) {
  return g.add(kWeightNorm, {v, length}, attrs);
}

}  // namespace ops
}  // namespace keel
