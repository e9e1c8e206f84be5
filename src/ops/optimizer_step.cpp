#include "src/ops/optimizer_step.h"

namespace keel {
namespace {

using Types = std::vector<TensorType>;

// p (0), g (1), lr (2), scale or absent (3)
void expect_common(const InferContext& c) {
  c.expect_floating(0, "p");
  c.expect(c.input(1) == c.input(0), "g", c.input(0).text(), c.input(1).text());
  c.expect_shape(2, "lr", {});
  if (c.has(3)) c.expect_shape(3, "scale", {});
}

void expect_moment(const InferContext& c, int i, std::string_view what) {
  c.expect(c.input(i) == c.input(0), what, c.input(0).text(), c.input(i).text());
}

void expect_range(const InferContext& c, std::string_view what, double value, bool holds) {
  c.expect(holds, what, "a value in its range", fmt::format("{}", value));
}

Types infer_sgd(const InferContext& c) {
  const auto& attrs = c.attrs.as<SgdAttrs>();
  expect_common(c);
  expect_range(c, "momentum", attrs.momentum, attrs.momentum >= 0 && attrs.momentum < 1);
  if (c.has(4)) expect_moment(c, 4, "u");
  return {c.input(0), c.has(4) ? c.input(4) : absent_type(c.dtype(0))};
}

Types infer_adam(const InferContext& c) {
  const auto& attrs = c.attrs.as<AdamAttrs>();
  expect_common(c);
  expect_range(c, "beta1", attrs.beta1, attrs.beta1 >= 0 && attrs.beta1 < 1);
  expect_range(c, "beta2", attrs.beta2, attrs.beta2 >= 0 && attrs.beta2 < 1);
  expect_range(c, "eps", attrs.eps, attrs.eps > 0);
  c.expect_dtype(4, "step", DType::kI32);
  expect_moment(c, 5, "m");
  expect_moment(c, 6, "v");
  return {c.input(0), c.input(5), c.input(6)};
}

Types infer_sum_squares(const InferContext& c) {
  c.expect_floating(0, "x");
  return {{c.dtype(0), {}}};
}

}  // namespace

const OpInfo kSgdStep{
    .name = "sgd_step", .infer = infer_sgd, .in_place = {{0, 0}, {4, 1}}, .keeps_on_guard = true};
const OpInfo kAdamStep{.name = "adam_step",
                       .infer = infer_adam,
                       .in_place = {{0, 0}, {5, 1}, {6, 2}},
                       .keeps_on_guard = true};
const OpInfo kSumSquares{.name = "sum_squares", .infer = infer_sum_squares};

namespace ops {

Value sgd_step(Graph& g, const SgdInputs& in, const SgdAttrs& attrs) {
  return g.add(kSgdStep, {in.p, in.g, in.lr, in.scale, in.u}, attrs);
}

Value adam_step(Graph& g, const AdamInputs& in, const AdamAttrs& attrs) {
  return g.add(kAdamStep, {in.p, in.g, in.lr, in.scale, in.step, in.m, in.v}, attrs);
}

Value sum_squares(Graph& g, Value x) { return g.add(kSumSquares, {x}); }

}  // namespace ops
}  // namespace keel
