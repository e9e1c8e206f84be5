#include "src/ops/norm/rms_norm.h"

#include "src/ops/norm/row_norm.h"

namespace keel {
namespace {

using Types = std::vector<TensorType>;

RowSizes expect_sizes(const InferContext& c) {
  const auto& attrs = c.attrs.as<RmsNormAttrs>();
  const RowSizes sizes = expect_rows(c, attrs.axes);
  expect_statistic(c, {.eps = attrs.eps}, sizes.width);
  return sizes;
}

Types infer(const InferContext& c) {
  const RowSizes sizes = expect_sizes(c);
  expect_affine(c, 1, row_shape(c.shape(0), c.attrs.as<RmsNormAttrs>().axes));
  return {c.input(0), {c.dtype(0), Shape{sizes.rows}}};
}

// (x, gain or absent, rrms, dy) -> (dx, dgain, dbias)
Types infer_backward(const InferContext& c) {
  const RowSizes sizes = expect_sizes(c);
  const auto& attrs = c.attrs.as<RmsNormAttrs>();
  const Shape parameter = row_shape(c.shape(0), attrs.axes);
  if (c.has(1)) c.expect_shape(1, "gain", parameter);
  c.expect_shape(2, "rrms", Shape{sizes.rows});
  c.expect_shape(3, "dy", c.shape(0));
  const TensorType dbias =
      attrs.has_bias ? TensorType{c.dtype(0), parameter} : absent_type(c.dtype(0));
  return {c.input(0), gradient_type(c, 1), dbias};
}

void backward(BackwardContext& c) {
  RmsNormAttrs attrs = c.attrs().as<RmsNormAttrs>();
  attrs.has_bias = c.input(2).valid();
  const Value dx =
      c.graph.add(kRmsNormBackward, {c.input(0), c.input(1), c.output(1), c.grad()}, attrs);
  for (int i : {0, 1, 2}) {
    if (c.needs(i)) c.set(i, dx.at(i));
  }
}

}  // namespace

const OpInfo kRmsNorm{
    .name = "rms_norm", .infer = infer, .backward = backward, .gradient = GradientKind::kExact};
const OpInfo kRmsNormBackward{
    .name = "rms_norm_backward", .infer = infer_backward, .in_place = {{3, 0}}};

namespace ops {

Value rms_norm(Graph& g, Value x, const NormAffine& affine, const RmsNormAttrs& attrs) {
  return g.add(kRmsNorm, {x, affine.gain, affine.bias}, attrs);
}

}  // namespace ops
}  // namespace keel
