#include "src/ops/norm/ada_norm.h"

#include "src/ops/norm/row_norm.h"

namespace keel {
namespace {

using Types = std::vector<TensorType>;

RowSizes expect_sizes(const InferContext& c) {
  const auto& attrs = c.attrs.as<AdaNormAttrs>();
  const RowSizes sizes = expect_rows(c, attrs.axes);
  expect_statistic(c, attrs.statistic(), sizes.width);
  return sizes;
}

Types infer(const InferContext& c) {
  const TensorType per_row{c.dtype(0), Shape{expect_sizes(c).rows}};
  return {c.input(0), per_row, per_row};
}

// (x, mean, rstd, dy) -> dx
Types infer_backward(const InferContext& c) {
  const Shape rows{expect_sizes(c).rows};
  c.expect_shape(1, "mean", rows);
  c.expect_shape(2, "rstd", rows);
  c.expect_shape(3, "dy", c.shape(0));
  return {c.input(0)};
}

void backward(BackwardContext& c) {
  c.set(0,
        c.graph.add(kAdaNormBackward, {c.input(0), c.output(1), c.output(2), c.grad()}, c.attrs()));
}

}  // namespace

const OpInfo kAdaNorm{
    .name = "ada_norm", .infer = infer, .backward = backward, .gradient = GradientKind::kDetached};
const OpInfo kAdaNormBackward{
    .name = "ada_norm_backward", .infer = infer_backward, .in_place = {{3, 0}}};

namespace ops {

Value ada_norm(Graph& g, Value x, const AdaNormAttrs& attrs) { return g.add(kAdaNorm, {x}, attrs); }

}  // namespace ops
}  // namespace keel
