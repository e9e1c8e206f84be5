#include "src/ops/norm/pn_v.h"

#include "src/ops/norm/columns.h"

namespace keel {
namespace {

using Types = std::vector<TensorType>;

// (x, gain or absent, bias or absent, psi2, mask or absent)
Types infer(const InferContext& c) {
  const auto& attrs = c.attrs.as<PnVAttrs>();
  const Shape channels{expect_columns(c, 4, attrs.eps).channels};
  expect_in_unit_interval(c, "keep", attrs.keep);
  expect_affine(c, 1, channels);
  c.expect_shape(3, "psi2", channels);
  const TensorType statistic{c.dtype(0), channels};
  return {c.input(0), statistic, attrs.training ? statistic : absent_type(c.dtype(0))};
}

// (x, gain or absent, rpsi, dy, mask or absent) -> (dx, dgain, dbias)
Types infer_backward(const InferContext& c) {
  const auto& attrs = c.attrs.as<PnVAttrs>();
  const Shape channels{expect_columns(c, 4, attrs.eps).channels};
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

const OpInfo kPnV{.name = "pn_v",
                  .infer = infer,
                  .backward = backward,
                  .gradient = GradientKind::kExact,
                  .in_place = {{3, 2}}};
const OpInfo kPnVBackward{.name = "pn_v_backward", .infer = infer_backward, .in_place = {{3, 0}}};

namespace ops {

Value pn_v(Graph& g, Value x, const NormAffine& affine, const PnVState& state,
           const PnVAttrs& attrs) {
  return g.add(kPnV, {x, affine.gain, affine.bias, state.psi2, state.mask}, attrs);
}

}  // namespace ops
}  // namespace keel
