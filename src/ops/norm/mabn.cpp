#include "src/ops/norm/mabn.h"

#include <algorithm>

#include "src/ops/norm/columns.h"

namespace keel {
namespace {

using Types = std::vector<TensorType>;

// The type of one value a channel.
TensorType expect_mabn(const InferContext& c, int mask) {
  const auto& attrs = c.attrs.as<MabnAttrs>();
  const ColumnSizes sizes = expect_columns(c, mask, attrs.eps);
  expect_in_unit_interval(c, "keep", attrs.keep);
  c.expect(attrs.clip >= 1, "clip", ">= 1", fmt::format("{}", attrs.clip));
  c.expect(attrs.m >= 1, "m", ">= 1", fmt::format("{}", attrs.m));
  return {c.dtype(0), {sizes.channels}};
}

void expect_step(const InferContext& c, int i) {
  c.expect_shape(i, "step", {});
  c.expect_dtype(i, "step", DType::kI32);
}

// (x, gain or absent, bias or absent, x2, gz, v, step, mask or absent)
Types infer(const InferContext& c) {
  const auto& attrs = c.attrs.as<MabnAttrs>();
  const TensorType statistic = expect_mabn(c, 7);
  const Shape ring{attrs.m, statistic.shape[0]};
  expect_affine(c, 1, statistic.shape);
  c.expect_shape(3, "x2", ring);
  c.expect_shape(4, "gz", ring);
  c.expect_shape(5, "v", statistic.shape);
  expect_step(c, 6);
  if (attrs.training) return {c.input(0), statistic, statistic, c.input(3), statistic, c.input(6)};
  const TensorType absent = absent_type(c.dtype(0));
  return {c.input(0), statistic, statistic, absent, absent, absent_type(DType::kI32)};
}

// (x, gain or absent, rstd, r, gz, step, dy, mask or absent) -> (dx, dgain, dbias, gz')
Types infer_backward(const InferContext& c) {
  const auto& attrs = c.attrs.as<MabnAttrs>();
  const TensorType statistic = expect_mabn(c, 7);
  if (c.has(1)) c.expect_shape(1, "gain", statistic.shape);
  c.expect_shape(2, "rstd", statistic.shape);
  c.expect_shape(3, "r", statistic.shape);
  c.expect_shape(4, "gz", {attrs.m, statistic.shape[0]});
  expect_step(c, 5);
  c.expect_shape(6, "dy", c.shape(0));
  const TensorType absent = absent_type(c.dtype(0));
  return {c.input(0), gradient_type(c, 1), attrs.has_bias ? statistic : absent,
          attrs.training ? c.input(4) : absent};
}

void backward(BackwardContext& c) {
  MabnAttrs attrs = c.attrs().as<MabnAttrs>();
  attrs.has_bias = c.input(2).valid();
  const Value dx = c.graph.add(kMabnBackward,
                               {c.input(0), c.input(1), c.output(1), c.output(2), c.state(4),
                                c.input(6), c.grad(), c.input(7)},
                               attrs);
  for (int i : {0, 1, 2}) {
    if (c.needs(i)) c.set(i, dx.at(i));
  }
  if (attrs.training) c.set_state(4, dx.at(3));
}

}  // namespace

const OpInfo kMabn{.name = "mabn",
                   .infer = infer,
                   .backward = backward,
                   .gradient = GradientKind::kSurrogate,
                   .in_place = {{3, 3}, {5, 4}}};
const OpInfo kMabnBackward{
    .name = "mabn_backward", .infer = infer_backward, .in_place = {{6, 0}, {4, 3}}};

namespace ops {

Value mabn(Graph& g, Value x, const NormAffine& affine, const MabnState& state,
           const MabnAttrs& attrs) {
  return g.add(kMabn,
               {x, affine.gain, affine.bias, state.x2, state.gz, state.v, state.step, state.mask},
               attrs);
}

}  // namespace ops
}  // namespace keel
