#include "src/ops/norm_noise.h"

#include "src/ops/norm/columns.h"

namespace keel {
namespace {

// (x, step, mask or absent); the backward's dy is like x
std::vector<TensorType> infer(const InferContext& c) {
  const auto& attrs = c.attrs.as<NormNoiseAttrs>();
  expect_columns(c, 2);
  c.expect_dtype(1, "step", DType::kI32);
  c.expect_shape(1, "step", {});
  for (const auto& [name, width] : {std::pair{"n_mean", attrs.n_mean},
                                    {"n_std", attrs.n_std},
                                    {"r_mean", attrs.r_mean},
                                    {"r_std", attrs.r_std}}) {
    c.expect(width >= 0, name, ">= 0", fmt::format("{}", width));
  }
  return {c.input(0)};
}

void backward(BackwardContext& c) {
  c.set(0, c.graph.add(kNormNoiseBackward, {c.grad(), c.input(1), c.input(2)}, c.attrs()));
}

}  // namespace

const OpInfo kNormNoise{.name = "norm_noise",
                        .infer = infer,
                        .backward = backward,
                        .gradient = GradientKind::kExact,
                        .in_place = {{0, 0}}};
const OpInfo kNormNoiseBackward{
    .name = "norm_noise_backward", .infer = infer, .in_place = {{0, 0}}};

namespace ops {

Value norm_noise(Graph& g, Value x, const NoiseInputs& inputs, NormNoiseAttrs attrs) {
  attrs.stream = std::int64_t{stream_of(g.unique_name("norm_noise"))};
  return g.add(kNormNoise, {x, inputs.step, inputs.mask}, attrs);
}

}  // namespace ops
}  // namespace keel
