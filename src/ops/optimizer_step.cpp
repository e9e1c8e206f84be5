#include "src/ops/optimizer_step.h"

namespace keel {
namespace {

using Types = std::vector<TensorType>;

void expect_range(const InferContext& c, std::string_view what, double value, bool holds) {
  c.expect(holds, what, "a value in its range", fmt::format("{}", value));
}

void expect_share(const InferContext& c, std::string_view what, double value) {
  expect_range(c, what, value, value >= 0 && value < 1);
}

void expect_common(const InferContext& c, double lr_scale) {
  c.expect_floating(UpdateInput::kP, "p");
  const TensorType &p = c.input(UpdateInput::kP), &g = c.input(UpdateInput::kG);
  c.expect(g == p, "g", p.text(), g.text());
  c.expect_shape(UpdateInput::kLr, "lr", {});
  if (c.has(UpdateInput::kScale)) c.expect_shape(UpdateInput::kScale, "scale", {});
  expect_range(c, "lr_scale", lr_scale, lr_scale >= 0);
}

// A state, and so the output that is its new value, is like p.
TensorType state(const InferContext& c, int place, std::string_view what) {
  const TensorType &p = c.input(UpdateInput::kP), &given = c.input(place);
  c.expect(given == p, what, p.text(), given.text());
  return given;
}

Types infer_sgd(const InferContext& c) {
  using In = SgdInput;
  const auto& attrs = c.attrs.as<SgdAttrs>();
  expect_common(c, attrs.lr_scale);
  expect_share(c, "momentum", attrs.momentum);
  return {c.input(In::kP), c.has(In::kU) ? state(c, In::kU, "u") : absent_type(c.dtype(In::kP))};
}

Types infer_adam(const InferContext& c) {
  using In = AdamInput;
  const auto& attrs = c.attrs.as<AdamAttrs>();
  expect_common(c, attrs.lr_scale);
  expect_share(c, "beta1", attrs.beta1);
  expect_share(c, "beta2", attrs.beta2);
  expect_range(c, "eps", attrs.eps, attrs.eps > 0);
  c.expect_dtype(In::kStep, "step", DType::kI32);
  return {c.input(In::kP), state(c, In::kM, "m"), state(c, In::kV, "v")};
}

Types infer_adagrad(const InferContext& c) {
  using In = AdagradInput;
  const auto& attrs = c.attrs.as<AdagradAttrs>();
  expect_common(c, attrs.lr_scale);
  expect_range(c, "eps", attrs.eps, attrs.eps > 0);
  return {c.input(In::kP), state(c, In::kH, "h")};
}

Types infer_graves(const InferContext& c) {
  using In = GravesInput;
  const auto& attrs = c.attrs.as<GravesAttrs>();
  expect_common(c, attrs.lr_scale);
  expect_share(c, "keep", attrs.keep);
  expect_share(c, "momentum", attrs.momentum);
  expect_range(c, "eps", attrs.eps, attrs.eps > 0);
  return {c.input(In::kP), state(c, In::kN, "n"), state(c, In::kQ, "q"), state(c, In::kD, "d")};
}

Types infer_sum_squares(const InferContext& c) {
  c.expect_floating(0, "x");
  return {{c.dtype(0), {}}};
}

}  // namespace

const OpInfo kSgdStep{
    .name = "sgd_step",
    .infer = infer_sgd,
    .in_place = {{UpdateInput::kP, UpdateOutput::kP}, {SgdInput::kU, SgdOutput::kU}},
    .keeps_on_guard = true};
const OpInfo kAdamStep{.name = "adam_step",
                       .infer = infer_adam,
                       .in_place = {{UpdateInput::kP, UpdateOutput::kP},
                                    {AdamInput::kM, AdamOutput::kM},
                                    {AdamInput::kV, AdamOutput::kV}},
                       .keeps_on_guard = true};
const OpInfo kAdagradStep{
    .name = "adagrad_step",
    .infer = infer_adagrad,
    .in_place = {{UpdateInput::kP, UpdateOutput::kP}, {AdagradInput::kH, AdagradOutput::kH}},
    .keeps_on_guard = true};
const OpInfo kGravesStep{.name = "graves_step",
                         .infer = infer_graves,
                         .in_place = {{UpdateInput::kP, UpdateOutput::kP},
                                      {GravesInput::kN, GravesOutput::kN},
                                      {GravesInput::kQ, GravesOutput::kQ},
                                      {GravesInput::kD, GravesOutput::kD}},
                         .keeps_on_guard = true};
const OpInfo kSumSquares{.name = "sum_squares", .infer = infer_sum_squares};

namespace ops {

Value sgd_step(Graph& g, const SgdOperands& in, const SgdAttrs& attrs) {
  return g.add(kSgdStep, {in.p, in.g, in.lr, in.scale, in.u}, attrs);
}

Value adam_step(Graph& g, const AdamOperands& in, const AdamAttrs& attrs) {
  return g.add(kAdamStep, {in.p, in.g, in.lr, in.scale, in.step, in.m, in.v}, attrs);
}

Value adagrad_step(Graph& g, const AdagradOperands& in, const AdagradAttrs& attrs) {
  return g.add(kAdagradStep, {in.p, in.g, in.lr, in.scale, in.h}, attrs);
}

Value graves_step(Graph& g, const GravesOperands& in, const GravesAttrs& attrs) {
  return g.add(kGravesStep, {in.p, in.g, in.lr, in.scale, in.n, in.q, in.d}, attrs);
}

Value sum_squares(Graph& g, Value x) { return g.add(kSumSquares, {x}); }

}  // namespace ops
}  // namespace keel
