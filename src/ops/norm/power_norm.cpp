#include "src/ops/norm/power_norm.h"

#include "src/ops/norm/columns.h"

namespace keel {
namespace {

using Types = std::vector<TensorType>;

ColumnSizes expect_common(const InferContext& c, int mask) {
  const auto& attrs = c.attrs.as<PowerNormAttrs>();
  expect_in_unit_interval(c, "alpha_f", attrs.alpha_f);
  expect_in_unit_interval(c, "alpha_b", attrs.alpha_b);
  const ColumnSizes sizes = expect_columns(c, mask, attrs.eps);
  c.expect(attrs.groups >= 0, "groups", ">= 0", fmt::format("{}", attrs.groups));
  if (attrs.is_scaled()) {
    c.expect(c.shape(0).rank() == 2, "x", "(rows, channels) with groups", c.shape(0).text());
    expect_scaling(c, {attrs.groups, attrs.scaling_eps});
  }
  return sizes;
}

// rrms, or nothing without groups.
TensorType scaling_type(const InferContext& c) {
  const auto& attrs = c.attrs.as<PowerNormAttrs>();
  if (!attrs.is_scaled()) return absent_type(c.dtype(0));
  return {c.dtype(0), {c.shape(0)[0], attrs.groups}};
}

void expect_step(const InferContext& c, int i, std::int64_t warmup) {
  c.expect(warmup >= 0, "warmup", ">= 0", fmt::format("{}", warmup));
  c.expect(warmup == 0 || c.has(i), "step", "a counter when there is a warm-up", "none");
  if (!c.has(i)) return;
  c.expect_shape(i, "step", {});
  c.expect_dtype(i, "step", DType::kI32);
}

// (x, gain or absent, bias or absent, psi2, nu, step or absent, mask or absent)
Types infer(const InferContext& c) {
  const auto& attrs = c.attrs.as<PowerNormAttrs>();
  const TensorType statistic{c.dtype(0), {expect_common(c, 6).channels}};
  expect_affine(c, 1, statistic.shape);
  c.expect_shape(3, "psi2", statistic.shape);
  c.expect_shape(4, "nu", statistic.shape);
  expect_step(c, 5, attrs.warmup);
  const TensorType absent = absent_type(c.dtype(0)), absent_step = absent_type(DType::kI32);
  const TensorType rrms = scaling_type(c);
  if (!attrs.training) {
    return {c.input(0), statistic, statistic, absent, absent, absent_step, absent, absent, rrms};
  }
  const TensorType step = c.has(5) ? c.input(5) : absent_step, scalar{c.dtype(0), {}};
  return {c.input(0), statistic, statistic, statistic, statistic, step, scalar, scalar, rrms};
}

// (x, gain or absent, rpsi, rdx, Gamma or absent, nu, dy, mask or absent, rrms or absent)
//   -> (dx, dgain, dbias, nu')
Types infer_backward(const InferContext& c) {
  const auto& attrs = c.attrs.as<PowerNormAttrs>();
  const TensorType statistic{c.dtype(0), {expect_common(c, 7).channels}};
  if (c.has(1)) c.expect_shape(1, "gain", statistic.shape);
  c.expect_shape(2, "rpsi", statistic.shape);
  c.expect_shape(3, "rdx", statistic.shape);
  if (attrs.training) c.expect_shape(4, "Gamma", statistic.shape);
  c.expect_shape(5, "nu", statistic.shape);
  c.expect_shape(6, "dy", c.shape(0));
  if (attrs.is_scaled()) c.expect_shape(8, "rrms", scaling_type(c).shape);
  const TensorType absent = absent_type(c.dtype(0));
  return {c.input(0), gradient_type(c, 1), attrs.has_bias ? statistic : absent,
          attrs.training ? statistic : absent};
}

void backward(BackwardContext& c) {
  PowerNormAttrs attrs = c.attrs().as<PowerNormAttrs>();
  attrs.has_bias = c.input(2).valid();
  const Value gamma = attrs.training ? c.output(3) : Value{}, nu = c.state(4);
  const Value rrms = attrs.is_scaled() ? c.output(8) : Value{};
  const Value dx = c.graph.add(
      kPowerNormBackward,
      {c.input(0), c.input(1), c.output(1), c.output(2), gamma, nu, c.grad(), c.input(6), rrms},
      attrs);
  for (int i : {0, 1, 2}) {
    if (c.needs(i)) c.set(i, dx.at(i));
  }
  if (attrs.training) c.set_state(4, dx.at(3));
}

}  // namespace

const OpInfo kPowerNorm{.name = "power_norm",
                        .infer = infer,
                        .backward = backward,
                        .gradient = GradientKind::kSurrogate};
const OpInfo kPowerNormBackward{
    .name = "power_norm_backward", .infer = infer_backward, .in_place = {{6, 0}}};

namespace ops {

Value power_norm(Graph& g, Value x, const NormAffine& affine, const PowerNormState& state,
                 const PowerNormAttrs& attrs) {
  return g.add(kPowerNorm,
               {x, affine.gain, affine.bias, state.psi2, state.nu, state.step, state.mask}, attrs);
}

}  // namespace ops
}  // namespace keel
