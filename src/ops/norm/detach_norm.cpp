#include "src/ops/norm/detach_norm.h"

#include "src/ops/norm/row_norm.h"

namespace keel {
namespace {

using Types = std::vector<TensorType>;

Types infer(const InferContext& c) {
  const auto& attrs = c.attrs.as<DetachNormAttrs>();
  const RowSizes sizes = expect_rows(c, attrs.axes);
  expect_statistic(c, attrs.statistic(), sizes.width);
  c.expect(attrs.detach_mean || attrs.detach_variance, "detach_mean, detach_variance",
           "at least one", "none");
  const TensorType per_row{c.dtype(0), Shape{sizes.rows}};
  return {c.input(0), per_row, per_row};
}

// (x or absent, mean or absent, rstd, dy) -> dx
Types infer_backward(const InferContext& c) {
  const auto& attrs = c.attrs.as<DetachNormAttrs>();
  const Shape rows{row_sizes(c.shape(3), attrs.axes).rows};
  if (!attrs.detach_variance) {
    c.expect_shape(0, "x", c.shape(3));
    c.expect_shape(1, "mean", rows);
  }
  c.expect_shape(2, "rstd", rows);
  return {c.input(3)};
}

void backward(BackwardContext& c) {
  const bool needs_xhat = !c.attrs().as<DetachNormAttrs>().detach_variance;
  const Value x = needs_xhat ? c.input(0) : Value{}, mean = needs_xhat ? c.output(1) : Value{};
  c.set(0, c.graph.add(kDetachNormBackward, {x, mean, c.output(2), c.grad()}, c.attrs()));
}

}  // namespace

const OpInfo kDetachNorm{.name = "detach_norm",
                         .infer = infer,
                         .backward = backward,
                         .gradient = GradientKind::kDetached};
const OpInfo kDetachNormBackward{
    .name = "detach_norm_backward", .infer = infer_backward, .in_place = {{3, 0}}};

namespace ops {

Value detach_norm(Graph& g, Value x, const DetachNormAttrs& attrs) {
  return g.add(kDetachNorm, {x}, attrs);
}

}  // namespace ops
}  // namespace keel
