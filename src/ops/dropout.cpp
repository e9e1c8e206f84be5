#include "src/ops/dropout.h"

namespace keel {
namespace {

std::vector<TensorType> infer(const InferContext& c) {
  const double p = c.attrs.as<DropoutAttrs>().p;
  c.expect_floating(0, "x");
  c.expect_dtype(1, "step", DType::kI32);
  c.expect_shape(1, "step", {});
  c.expect(p >= 0 && p < 1, "p", "in [0, 1)", fmt::format("{}", p));
  return {c.input(0)};
}

void backward(BackwardContext& c) {
  c.set(0, c.graph.add(kDropoutBackward, {c.grad(), c.input(1)}, c.attrs()));
}

}  // namespace

const OpInfo kDropout{.name = "dropout",
                      .infer = infer,
                      .backward = backward,
                      .gradient = GradientKind::kExact,
                      .in_place = {{0, 0}}};
const OpInfo kDropoutBackward{.name = "dropout_backward", .infer = infer, .in_place = {{0, 0}}};

namespace ops {

Value dropout(Graph& g, Value x, Value step, double p, std::int64_t seed) {
  if (p == 0) return x;
  const std::string name = g.unique_name("dropout");
  return g.add(kDropout, {x, step}, DropoutAttrs{p, seed, std::int64_t{stream_of(name)}});
}

}  // namespace ops
}  // namespace keel
