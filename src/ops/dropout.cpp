#include "src/ops/dropout.h"

namespace keel {
namespace {

using In = DropoutInput;

std::vector<TensorType> infer(const InferContext& c) {
  const double p = c.attrs.as<DropoutAttrs>().p;
  c.expect_floating(In::kX, "x");
  expect_random_key(c, In::kStep, In::kFirstRow);
  c.expect(p >= 0 && p < 1, "p", "in [0, 1)", fmt::format("{}", p));
  expect_row_numbers(c, sampled_rows(c.shape(In::kX)).width, 1);
  return {c.input(In::kX)};
}

void backward(BackwardContext& c) {
  c.set(In::kX, c.graph.add(kDropoutBackward,
                            {c.grad(), c.input(In::kStep), c.input(In::kFirstRow)}, c.attrs()));
}

}  // namespace

const OpInfo kDropout{.name = "dropout",
                      .inputs = {"x", {"step", DType::kI32}, {"first_row", DType::kI32}},
                      .attrs = DropoutAttrs{},
                      .infer = infer,
                      .backward = backward,
                      .gradient = GradientKind::kExact,
                      .in_place = {{In::kX, 0}}};
const OpInfo kDropoutBackward{.name = "dropout_backward",
                              .inputs = {"dy", {"step", DType::kI32}, {"first_row", DType::kI32}},
                              .attrs = DropoutAttrs{},
                              .infer = infer,
                              .in_place = {{In::kX, 0}}};

namespace ops {

Value dropout(Graph& g, Value x, const RandomKey& key, double p, std::int64_t seed) {
  if (p == 0) return x;
  const std::string name = g.unique_name("dropout");
  return g.add(kDropout, {x, key.step, key.first_row},
               DropoutAttrs{p, seed, std::int64_t{stream_of(name)}});
}

}  // namespace ops
}  // namespace keel
