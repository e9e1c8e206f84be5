#include "src/ops/norm/scale_norm.h"

#include "src/ops/norm/row_norm.h"

namespace keel {
namespace {

using Types = std::vector<TensorType>;

// (x, gain or absent, ...)
RowSizes expect_inputs(const InferContext& c) {
  const auto& attrs = c.attrs.as<ScaleNormAttrs>();
  const RowSizes sizes = expect_rows(c, attrs.axes);
  expect_statistic(c, {.eps = attrs.eps}, sizes.width);
  if (c.has(1)) {
    c.expect_shape(1, "gain", Shape{1});
    c.expect_dtype(1, "gain", c.dtype(0));
  }
  return sizes;
}

Types infer(const InferContext& c) {
  return {c.input(0), {c.dtype(0), Shape{expect_inputs(c).rows}}};
}

// (x, gain or absent, rnorm, dy) -> (dx, dgain)
Types infer_backward(const InferContext& c) {
  c.expect_shape(2, "rnorm", Shape{expect_inputs(c).rows});
  c.expect_shape(3, "dy", c.shape(0));
  return {c.input(0), gradient_type(c, 1)};
}

void backward(BackwardContext& c) {
  const Value dx =
      c.graph.add(kScaleNormBackward, {c.input(0), c.input(1), c.output(1), c.grad()}, c.attrs());
  for (int i : {0, 1}) {
    if (c.needs(i)) c.set(i, dx.at(i));
  }
}

}  // namespace

const OpInfo kScaleNorm{
    .name = "scale_norm", .infer = infer, .backward = backward, .gradient = GradientKind::kExact};
const OpInfo kScaleNormBackward{
    .name = "scale_norm_backward", .infer = infer_backward, .in_place = {{3, 0}}};

namespace ops {

Value scale_norm(Graph& g, Value x, Value gain, const ScaleNormAttrs& attrs) {
  return g.add(kScaleNorm, {x, gain}, attrs);
}

}  // namespace ops
}  // namespace keel
