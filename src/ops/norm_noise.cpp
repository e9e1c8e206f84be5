#include "src/ops/norm_noise.h"

#include "src/ops/norm/columns.h"

namespace keel {
namespace {

using In = NormNoiseInput;

// A sample takes four numbers of its row for every channel.
void expect_positions(const InferContext& c, const ColumnSizes& sizes, std::int64_t positions) {
  const bool is_image = c.shape(In::kX).rank() == 4;
  c.expect(positions == 1 || (!is_image && positions > 0 && sizes.outer % positions == 0),
           "positions", is_image ? "1 for images" : fmt::format("a divisor of {}", sizes.outer),
           fmt::format("{}", positions));
  expect_row_numbers(c, checked_multiply(positions, sizes.channels), 4);
}

std::vector<TensorType> infer(const InferContext& c) {
  const auto& attrs = c.attrs.as<NormNoiseAttrs>();
  const ColumnSizes sizes = expect_columns(c, In::kMask);
  expect_random_key(c, In::kStep, In::kFirstRow);
  expect_positions(c, sizes, attrs.positions);
  for (const auto& [name, width] : {std::pair{"n_mean", attrs.n_mean},
                                    {"n_std", attrs.n_std},
                                    {"r_mean", attrs.r_mean},
                                    {"r_std", attrs.r_std}}) {
    c.expect(width >= 0, name, ">= 0", fmt::format("{}", width));
  }
  return {wide_x(c)};
}

void backward(BackwardContext& c) {
  c.set(In::kX,
        c.graph.add(kNormNoiseBackward,
                    {c.grad(), c.input(In::kStep), c.input(In::kFirstRow), c.input(In::kMask)},
                    c.attrs()));
}

}  // namespace

const OpInfo kNormNoise{
    .name = "norm_noise",
    .inputs = {"x", {"step", DType::kI32}, {"first_row", DType::kI32}, {"mask", DType::kU8}},
    .attrs = NormNoiseAttrs{},
    .infer = infer,
    .backward = backward,
    .gradient = GradientKind::kExact,
    .in_place = {{In::kX, 0}}};
const OpInfo kNormNoiseBackward{
    .name = "norm_noise_backward",
    .inputs = {"dy", {"step", DType::kI32}, {"first_row", DType::kI32}, {"mask", DType::kU8}},
    .attrs = NormNoiseAttrs{},
    .infer = infer,
    .in_place = {{In::kX, 0}}};

namespace ops {

Value norm_noise(Graph& g, Value x, const NoiseOperands& operands, NormNoiseAttrs attrs) {
  attrs.stream = std::int64_t{stream_of(g.unique_name("norm_noise"))};
  return g.add(kNormNoise, {x, operands.key.step, operands.key.first_row, operands.mask}, attrs);
}

}  // namespace ops
}  // namespace keel
