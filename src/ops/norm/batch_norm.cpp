#include "src/ops/norm/batch_norm.h"

#include "src/ops/norm/columns.h"

namespace keel {
namespace {

using Types = std::vector<TensorType>;

ColumnSizes expect_batch(const InferContext& c, int mask) {
  const auto& attrs = c.attrs.as<BatchNormAttrs>();
  const ColumnSizes sizes = expect_columns(c, mask);
  const bool wants_unbiased = attrs.unbiased || attrs.running_unbiased;
  expect_statistic(c, {attrs.eps, attrs.training && wants_unbiased, false}, sizes.count());
  expect_in_unit_interval(c, "keep", attrs.keep);
  return sizes;
}

// (x, gain or absent, bias or absent, running_mean, running_var, mask or absent)
Types infer(const InferContext& c) {
  const Shape channels{expect_batch(c, 5).channels};
  expect_affine(c, 1, channels);
  c.expect_shape(3, "running_mean", channels);
  c.expect_shape(4, "running_var", channels);
  const TensorType statistic{c.dtype(0), channels};
  const bool training = c.attrs.as<BatchNormAttrs>().training;
  const TensorType state = training ? statistic : absent_type(c.dtype(0));
  return {c.input(0), statistic, statistic, state, state};
}

// (x, gain or absent, mean, rstd, dy, mask or absent) -> (dx, dgain, dbias)
Types infer_backward(const InferContext& c) {
  const Shape channels{expect_batch(c, 5).channels};
  if (c.has(1)) c.expect_shape(1, "gain", channels);
  c.expect_shape(2, "mean", channels);
  c.expect_shape(3, "rstd", channels);
  c.expect_shape(4, "dy", c.shape(0));
  const bool has_bias = c.attrs.as<BatchNormAttrs>().has_bias;
  const TensorType dbias = has_bias ? TensorType{c.dtype(0), channels} : absent_type(c.dtype(0));
  return {c.input(0), gradient_type(c, 1), dbias};
}

void backward(BackwardContext& c) {
  BatchNormAttrs attrs = c.attrs().as<BatchNormAttrs>();
  attrs.has_bias = c.input(2).valid();
  const Value dx =
      c.graph.add(kBatchNormBackward,
                  {c.input(0), c.input(1), c.output(1), c.output(2), c.grad(), c.input(5)}, attrs);
  for (int i : {0, 1, 2}) {
    if (c.needs(i)) c.set(i, dx.at(i));
  }
}

}  // namespace

ColumnSizes column_sizes(const Shape& x) { return {x[0], x[1], x.elements(2, x.rank())}; }

const OpInfo kBatchNorm{.name = "batch_norm",
                        .infer = infer,
                        .backward = backward,
                        .gradient = GradientKind::kExact,
                        .in_place = {{3, 3}, {4, 4}}};
const OpInfo kBatchNormBackward{
    .name = "batch_norm_backward", .infer = infer_backward, .in_place = {{4, 0}}};

namespace ops {

Value batch_norm(Graph& g, Value x, const NormAffine& affine, const RunningStatistics& running,
                 const BatchNormAttrs& attrs) {
  return g.add(kBatchNorm, {x, affine.gain, affine.bias, running.mean, running.var, running.mask},
               attrs);
}

}  // namespace ops
}  // namespace keel
