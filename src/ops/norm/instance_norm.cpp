#include "src/ops/norm/instance_norm.h"

namespace keel {
namespace {

using Types = std::vector<TensorType>;

// The type of a statistic.
TensorType expect_sequences(const InferContext& c, int mask) {
  const Shape& x = c.shape(0);
  c.expect_floating(0, "x");
  c.expect(x.rank() == 3, "x", "(n, steps, channels)", x.text());
  const SequenceSizes sizes = sequence_sizes(x);
  c.expect(sizes.samples >= 1 && sizes.steps >= 1, "x", "at least one sample and step", x.text());
  expect_statistic(c, {c.attrs.as<InstanceNormAttrs>().eps}, sizes.steps);
  if (c.has(mask)) {
    c.expect_shape(mask, "mask", {sizes.samples, sizes.steps});
    c.expect_dtype(mask, "mask", DType::kU8);
  }
  return {c.dtype(0), {sizes.samples, sizes.channels}};
}

// (x, gain or absent, bias or absent, mask or absent)
Types infer(const InferContext& c) {
  const TensorType statistic = expect_sequences(c, 3);
  expect_affine(c, 1, {statistic.shape[1]});
  return {c.input(0), statistic, statistic};
}

// (x, gain or absent, mean, rstd, dy, mask or absent) -> (dx, dgain, dbias)
Types infer_backward(const InferContext& c) {
  const TensorType statistic = expect_sequences(c, 5);
  const Shape channels{statistic.shape[1]};
  if (c.has(1)) c.expect_shape(1, "gain", channels);
  c.expect_shape(2, "mean", statistic.shape);
  c.expect_shape(3, "rstd", statistic.shape);
  c.expect_shape(4, "dy", c.shape(0));
  const bool has_bias = c.attrs.as<InstanceNormAttrs>().has_bias;
  const TensorType dbias = has_bias ? TensorType{c.dtype(0), channels} : absent_type(c.dtype(0));
  return {c.input(0), gradient_type(c, 1), dbias};
}

void backward(BackwardContext& c) {
  InstanceNormAttrs attrs = c.attrs().as<InstanceNormAttrs>();
  attrs.has_bias = c.input(2).valid();
  const Value dx =
      c.graph.add(kInstanceNormBackward,
                  {c.input(0), c.input(1), c.output(1), c.output(2), c.grad(), c.input(3)}, attrs);
  for (int i : {0, 1, 2}) {
    if (c.needs(i)) c.set(i, dx.at(i));
  }
}

}  // namespace

const OpInfo kInstanceNorm{.name = "instance_norm",
                           .infer = infer,
                           .backward = backward,
                           .gradient = GradientKind::kExact};
const OpInfo kInstanceNormBackward{
    .name = "instance_norm_backward", .infer = infer_backward, .in_place = {{4, 0}}};

namespace ops {

Value instance_norm(Graph& g, Value x, const NormAffine& affine, Value mask,
                    const InstanceNormAttrs& attrs) {
  return g.add(kInstanceNorm, {x, affine.gain, affine.bias, mask}, attrs);
}

}  // namespace ops
}  // namespace keel
