#include "src/ops/norm/batch_renorm.h"

#include "src/ops/norm/columns.h"

namespace keel {
namespace {

using Types = std::vector<TensorType>;

ColumnSizes expect_renorm(const InferContext& c, int mask) {
  const auto& attrs = c.attrs.as<BatchRenormAttrs>();
  const auto expect = [&](bool holds, std::string_view what, const char* expected, double got) {
    c.expect(holds, what, expected, fmt::format("{}", got));
  };
  const ColumnSizes sizes = expect_columns(c, mask, attrs.eps);
  expect_in_unit_interval(c, "rate", attrs.rate);
  expect(attrs.r_max < 0 || attrs.r_max >= 1, "r_max", ">= 1, or < 0 for the schedule",
         attrs.r_max);
  expect(attrs.r_max_limit >= 1, "r_max_limit", ">= 1", attrs.r_max_limit);
  expect(attrs.d_max_limit >= 0, "d_max_limit", ">= 0", attrs.d_max_limit);
  return sizes;
}

// (x, gain or absent, bias or absent, running_mean, running_std, step, mask or absent)
Types infer(const InferContext& c) {
  const Shape channels{expect_renorm(c, 6).channels};
  expect_affine(c, 1, channels);
  c.expect_shape(3, "running_mean", channels);
  c.expect_shape(4, "running_std", channels);
  c.expect_shape(5, "step", {});
  c.expect_dtype(5, "step", DType::kI32);
  const TensorType saved{c.dtype(0), channels};
  Types types{c.input(0), saved, saved, saved, saved, saved, saved, c.input(5)};
  if (!c.attrs.as<BatchRenormAttrs>().training) {
    for (int j : {5, 6, 7}) types[std::size_t(j)] = absent_type(types[std::size_t(j)].dtype);
  }
  return types;
}

// (x, gain or absent, mean, rstd, r, d, dy, mask or absent) -> (dx, dgain, dbias)
Types infer_backward(const InferContext& c) {
  const Shape channels{expect_renorm(c, 7).channels};
  if (c.has(1)) c.expect_shape(1, "gain", channels);
  constexpr std::string_view kSaved[] = {"mean", "rstd", "r", "d"};
  for (int i = 0; i < 4; ++i) c.expect_shape(2 + i, kSaved[i], channels);
  c.expect_shape(6, "dy", c.shape(0));
  const bool has_bias = c.attrs.as<BatchRenormAttrs>().has_bias;
  const TensorType dbias = has_bias ? TensorType{c.dtype(0), channels} : absent_type(c.dtype(0));
  return {c.input(0), gradient_type(c, 1), dbias};
}

void backward(BackwardContext& c) {
  BatchRenormAttrs attrs = c.attrs().as<BatchRenormAttrs>();
  attrs.has_bias = c.input(2).valid();
  const Value dx = c.graph.add(kBatchRenormBackward,
                               {c.input(0), c.input(1), c.output(1), c.output(2), c.output(3),
                                c.output(4), c.grad(), c.input(6)},
                               attrs);
  for (int i : {0, 1, 2}) {
    if (c.needs(i)) c.set(i, dx.at(i));
  }
}

}  // namespace

const OpInfo kBatchRenorm{.name = "batch_renorm",
                          .infer = infer,
                          .backward = backward,
                          .gradient = GradientKind::kDetached,
                          .in_place = {{3, 5}, {4, 6}}};
const OpInfo kBatchRenormBackward{
    .name = "batch_renorm_backward", .infer = infer_backward, .in_place = {{6, 0}}};

namespace ops {

Value batch_renorm(Graph& g, Value x, const NormAffine& affine, const RenormState& state,
                   const BatchRenormAttrs& attrs) {
  return g.add(kBatchRenorm,
               {x, affine.gain, affine.bias, state.mean, state.std, state.step, state.mask}, attrs);
}

}  // namespace ops
}  // namespace keel
