#include "src/ops/norm/pn_v.h"

namespace keel {
namespace {

using Types = std::vector<TensorType>;

// (x, gain or absent, bias or absent, psi2, mask or absent)
Types infer(const InferContext& c) {
  const auto& attrs = c.attrs.as<PnVAttrs>();
  const Shape channels{expect_masked_columns(c, attrs.eps, 4).channels};
  expect_share(c, "keep", attrs.keep);
  expect_affine(c, 1, channels);
  c.expect_shape(3, "psi2", channels);
  const TensorType statistic{c.dtype(0), channels};
  return {c.input(0), statistic, attrs.training ? statistic : absent_type(c.dtype(0))};
}

// (x, gain or absent, rpsi, dy, mask or absent) -> (dx, dgain, dbias)
Types infer_backward(const InferContext& c) {
  const auto& attrs = c.attrs.as<PnVAttrs>();
  const Shape channels{expect_masked_columns(c, attrs.eps, 4).channels};
  if (c.has(1)) c.expect_shape(1, "gain", channels);
  c.expect_shape(2, "rpsi", channels);
  c.expect_shape(3, "dy", c.shape(0));
  const TensorType dbias =
      attrs.has_bias ? TensorType{c.dtype(0), channels} : absent_type(c.dtype(0));
  return {c.input(0), gradient_type(c, 1), dbias};
}

void backward(BackwardContext& c) {
  PnVAttrs attrs = c.attrs().as<PnVAttrs>();
  attrs.has_bias = c.input(2).valid();
  const Value dx =
      c.graph.add(kPnVBackward, {c.input(0), c.input(1), c.output(1), c.grad(), c.input(4)}, attrs);
  for (int i : {0, 1, 2}) {
    if (c.needs(i)) c.set(i, dx.at(i));
  }
}

}  // namespace

ColumnSizes expect_masked_columns(const InferContext& c, double eps, int mask) {
  const Shape& x = c.shape(0);
  c.expect_floating(0, "x");
  c.expect(x.rank() == 2 || x.rank() == 4, "x", "(rows, channels) or (n, channels, h, w)",
           x.text());
  const ColumnSizes sizes = column_sizes(x);
  c.expect(sizes.count() >= 1, "x", "at least one element a feature", x.text());
  c.expect(eps >= 0, "eps", ">= 0", fmt::format("{}", eps));
  if (!c.has(mask)) return sizes;
  c.expect(x.rank() == 2, "mask", "none for images", c.shape(mask).text());
  c.expect_shape(mask, "mask", Shape{sizes.outer});
  c.expect_dtype(mask, "mask", DType::kU8);
  return sizes;
}

void expect_share(const InferContext& c, std::string_view what, double value) {
  c.expect(value >= 0 && value <= 1, what, "in [0, 1]", fmt::format("{}", value));
}

const OpInfo kPnV{
    .name = "pn_v", .infer = infer, .backward = backward, .gradient = GradientKind::kExact};
const OpInfo kPnVBackward{.name = "pn_v_backward", .infer = infer_backward, .in_place = {{3, 0}}};

namespace ops {

Value pn_v(Graph& g, Value x, const NormAffine& affine, const PnVState& state,
           const PnVAttrs& attrs) {
  return g.add(kPnV, {x, affine.gain, affine.bias, state.psi2, state.mask}, attrs);
}

}  // namespace ops
}  // namespace keel
