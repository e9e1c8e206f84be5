#include "src/ops/norm/layer_norm.h"

namespace keel {
namespace {

using Types = std::vector<TensorType>;

Shape trailing(const Shape& x, std::int64_t axes) {
  return Shape(x.sizes().last(std::size_t(axes)));
}

void expect_rows(const InferContext& c) {
  const auto& attrs = c.attrs.as<LayerNormAttrs>();
  const Shape& x = c.shape(0);
  c.expect_floating(0, "x");
  c.expect(attrs.axes >= 1 && attrs.axes <= x.rank(), "axes", "1 to the rank of " + x.text(),
           fmt::format("{}", attrs.axes));
  const std::int64_t width = row_sizes(x, attrs.axes).width;
  c.expect(width >= 1, "x", "at least one element a row", x.text());
  expect_statistic(c, attrs.statistic(), width);
}

Types infer(const InferContext& c) {
  expect_rows(c);
  const auto& attrs = c.attrs.as<LayerNormAttrs>();
  expect_affine(c, 1, trailing(c.shape(0), attrs.axes));
  const TensorType per_row{c.dtype(0), Shape{row_sizes(c.shape(0), attrs.axes).rows}};
  return {c.input(0), per_row, per_row};
}

// (x, gain or absent, mean, rstd, dy) -> (dx, dgain, dbias)
Types infer_backward(const InferContext& c) {
  expect_rows(c);
  const auto& attrs = c.attrs.as<LayerNormAttrs>();
  const Shape parameter = trailing(c.shape(0), attrs.axes);
  if (c.has(1)) c.expect_shape(1, "gain", parameter);
  for (int i : {2, 3}) {
    c.expect_shape(i, "statistic", Shape{row_sizes(c.shape(0), attrs.axes).rows});
  }
  c.expect_shape(4, "dy", c.shape(0));
  const TensorType dbias =
      attrs.has_bias ? TensorType{c.dtype(0), parameter} : absent_type(c.dtype(0));
  return {c.input(0), gradient_type(c, 1), dbias};
}

void backward(BackwardContext& c) {
  LayerNormAttrs attrs = c.attrs().as<LayerNormAttrs>();
  attrs.has_bias = c.input(2).valid();
  const Value dx = c.graph.add(kLayerNormBackward,
                               {c.input(0), c.input(1), c.output(1), c.output(2), c.grad()}, attrs);
  for (int i : {0, 1, 2}) {
    if (c.needs(i)) c.set(i, dx.at(i));
  }
}

}  // namespace

RowSizes row_sizes(const Shape& x, std::int64_t axes) {
  const int split = x.rank() - static_cast<int>(axes);
  return {x.elements(0, split), x.elements(split, x.rank())};
}

const OpInfo kLayerNorm{
    .name = "layer_norm", .infer = infer, .backward = backward, .gradient = GradientKind::kExact};
const OpInfo kLayerNormBackward{
    .name = "layer_norm_backward", .infer = infer_backward, .in_place = {{4, 0}}};

namespace ops {

Value layer_norm(Graph& g, Value x, const NormAffine& affine, const LayerNormAttrs& attrs) {
  return g.add(kLayerNorm, {x, affine.gain, affine.bias}, attrs);
}

}  // namespace ops
}  // namespace keel
