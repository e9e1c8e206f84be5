#include "src/ops/norm/weight_norm.h"

namespace keel {
namespace {

using Types = std::vector<TensorType>;

// The type of one value a unit.
TensorType expect_weights(const InferContext& c) {
  const auto& attrs = c.attrs.as<WeightNormAttrs>();
  const Shape& v = c.shape(0);
  c.expect_floating(0, "v");
  c.expect(attrs.by_column ? v.rank() == 2 : v.rank() >= 2, "v",
           attrs.by_column ? "(in, out)" : "(out, ...)", v.text());
  expect_statistic(c, {attrs.eps}, 1);
  const TensorType type{c.dtype(0), {weight_sizes(v, attrs).channels}};
  c.expect_shape(1, "g", type.shape);
  c.expect_dtype(1, "g", type.dtype);
  return type;
}

// (v, g)
Types infer(const InferContext& c) {
  const TensorType per_unit = expect_weights(c);
  return {c.input(0), per_unit};
}

// (v, g, rnorm, dw) -> (dv, dg)
Types infer_backward(const InferContext& c) {
  const TensorType per_unit = expect_weights(c);
  c.expect_shape(2, "rnorm", per_unit.shape);
  c.expect_shape(3, "dw", c.shape(0));
  return {c.input(0), per_unit};
}

void backward(BackwardContext& c) {
  const Value dv =
      c.graph.add(kWeightNormBackward, {c.input(0), c.input(1), c.output(1), c.grad()}, c.attrs());
  for (int i : {0, 1}) {
    if (c.needs(i)) c.set(i, dv.at(i));
  }
}

}  // namespace

ColumnSizes weight_sizes(const Shape& v, const WeightNormAttrs& attrs) {
  if (attrs.by_column) return {v[0], v[1], 1};
  return {1, v[0], v.elements(1, v.rank())};
}

const OpInfo kWeightNorm{
    .name = "weight_norm", .infer = infer, .backward = backward, .gradient = GradientKind::kExact};
const OpInfo kWeightNormBackward{
    .name = "weight_norm_backward", .infer = infer_backward, .in_place = {{3, 0}}};

namespace ops {

Value weight_norm(Graph& g, Value v, Value length, const WeightNormAttrs& attrs) {
  return g.add(kWeightNorm, {v, length}, attrs);
}

}  // namespace ops
}  // namespace keel
