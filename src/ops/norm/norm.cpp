#include "src/ops/norm/norm.h"

#include "src/ops/product_type.h"

namespace keel {

void expect_statistic(const InferContext& c, const NormStatistic& statistic, std::int64_t count) {
  c.expect(statistic.eps >= 0, "eps", ">= 0", fmt::format("{}", statistic.eps));
  c.expect(!statistic.unbiased || count >= 2, "x",
           "at least 2 elements a statistic for an unbiased variance", fmt::format("{}", count));
}

DType wide_type(const InferContext& c, int place) { return product_type(c.dtype(place)); }
TensorType wide_x(const InferContext& c) { return {wide_type(c), c.shape(NormInput::kX)}; }

void expect_dy(const InferContext& c, int place) {
  c.expect_shape(place, "dy", c.shape(NormInput::kX));
  c.expect_dtype(place, "dy", c.dtype(NormInput::kX));
}

Value gradient_like_x(BackwardContext& c) {
  const Value dy = c.grad();
  return dy.valid() ? as_factor(c.graph, dy, c.input(NormInput::kX)) : dy;
}

void expect_affine(const InferContext& c, int gain, int bias, const Shape& expected) {
  for (const auto& [place, name] : {std::pair{gain, "gain"}, {bias, "bias"}}) {
    if (!c.has(place)) continue;
    c.expect_shape(place, name, expected);
    c.expect_dtype(place, name, wide_type(c));
  }
}

void expect_number(const InferContext& c, int place) {
  const std::string_view name = c.op.inputs[std::size_t(place)].name;
  c.expect(c.has(place), name, "one number", "none");
  c.expect_shape(place, name, Shape{1});
  c.expect_dtype(place, name, wide_type(c));
}

TensorType type_if(bool applies, const TensorType& type) {
  return applies ? type : absent_type(type.dtype);
}

TensorType gradient_type(const InferContext& c, int input) {
  return c.has(input) ? c.input(input) : absent_type(wide_type(c));
}

void set_gradients(BackwardContext& c, Value backward) {
  const OpInfo& op = *c.graph.node(c.output(0)).op;
  const OpInfo& gradients = *c.graph.node(backward).op;
  for (int i = 0; i < int(op.inputs.size()); ++i) {
    const int output = output_place(gradients, fmt::format("d{}", op.inputs[std::size_t(i)].name));
    if (output >= 0 && c.needs(i)) c.set(i, backward.at(output));
  }
}

}  // namespace keel
