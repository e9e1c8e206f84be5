#include "src/ops/optimizer_step.h"

namespace keel {
namespace {

using Types = std::vector<TensorType>;
using P = UpdatePorts;

void expect_range(const InferContext& c, std::string_view what, double value, bool holds) {
  c.expect(holds, what, "a value in its range", fmt::format("{}", value));
}

void expect_share(const InferContext& c, std::string_view what, double value) {
  expect_range(c, what, value, value >= 0 && value < 1);
}

void expect_common(const InferContext& c, double lr_scale) {
  c.expect_floating(P::kP, "p");
  const TensorType &p = c.input(P::kP), &g = c.input(P::kG);
  c.expect(g == p, "g", p.text(), g.text());
  c.expect_shape(P::kLr, "lr", {});
  if (c.has(P::kScale)) c.expect_shape(P::kScale, "scale", {});
  expect_range(c, "lr_scale", lr_scale, lr_scale >= 0);
}

// A state, and so the output that is its new value, is like p.
TensorType state(const InferContext& c, int port, std::string_view what) {
  const TensorType &p = c.input(P::kP), &given = c.input(port);
  c.expect(given == p, what, p.text(), given.text());
  return given;
}

Types infer_sgd(const InferContext& c) {
  using S = SgdPorts;
  const auto& attrs = c.attrs.as<SgdAttrs>();
  expect_common(c, attrs.lr_scale);
  expect_share(c, "momentum", attrs.momentum);
  return {c.input(P::kP), c.has(S::kU) ? state(c, S::kU, "u") : absent_type(c.dtype(P::kP))};
}

Types infer_adam(const InferContext& c) {
  using A = AdamPorts;
  const auto& attrs = c.attrs.as<AdamAttrs>();
  expect_common(c, attrs.lr_scale);
  expect_share(c, "beta1", attrs.beta1);
  expect_share(c, "beta2", attrs.beta2);
  expect_range(c, "eps", attrs.eps, attrs.eps > 0);
  c.expect_dtype(A::kStep, "step", DType::kI32);
  return {c.input(P::kP), state(c, A::kM, "m"), state(c, A::kV, "v")};
}

Types infer_adagrad(const InferContext& c) {
  const auto& attrs = c.attrs.as<AdagradAttrs>();
  expect_common(c, attrs.lr_scale);
  expect_range(c, "eps", attrs.eps, attrs.eps > 0);
  return {c.input(P::kP), state(c, AdagradPorts::kH, "h")};
}

Types infer_graves(const InferContext& c) {
  using G = GravesPorts;
  const auto& attrs = c.attrs.as<GravesAttrs>();
  expect_common(c, attrs.lr_scale);
  expect_share(c, "keep", attrs.keep);
  expect_share(c, "momentum", attrs.momentum);
  expect_range(c, "eps", attrs.eps, attrs.eps > 0);
  return {c.input(P::kP), state(c, G::kN, "n"), state(c, G::kQ, "q"), state(c, G::kD, "d")};
}

Types infer_sum_squares(const InferContext& c) {
  c.expect_floating(0, "x");
  return {{c.dtype(0), {}}};
}

}  // namespace

const OpInfo kSgdStep{.name = "sgd_step",
                      .infer = infer_sgd,
                      .in_place = {{P::kP, P::kNextP}, {SgdPorts::kU, SgdPorts::kNextU}},
                      .keeps_on_guard = true};
const OpInfo kAdamStep{.name = "adam_step",
                       .infer = infer_adam,
                       .in_place = {{P::kP, P::kNextP},
                                    {AdamPorts::kM, AdamPorts::kNextM},
                                    {AdamPorts::kV, AdamPorts::kNextV}},
                       .keeps_on_guard = true};
const OpInfo kAdagradStep{
    .name = "adagrad_step",
    .infer = infer_adagrad,
    .in_place = {{P::kP, P::kNextP}, {AdagradPorts::kH, AdagradPorts::kNextH}},
    .keeps_on_guard = true};
const OpInfo kGravesStep{.name = "graves_step",
                         .infer = infer_graves,
                         .in_place = {{P::kP, P::kNextP},
                                      {GravesPorts::kN, GravesPorts::kNextN},
                                      {GravesPorts::kQ, GravesPorts::kNextQ},
                                      {GravesPorts::kD, GravesPorts::kNextD}},
                         .keeps_on_guard = true};
const OpInfo kSumSquares{.name = "sum_squares", .infer = infer_sum_squares};

namespace ops {

Value sgd_step(Graph& g, const SgdInputs& in, const SgdAttrs& attrs) {
  return g.add(kSgdStep, {in.p, in.g, in.lr, in.scale, in.u}, attrs);
}

Value adam_step(Graph& g, const AdamInputs& in, const AdamAttrs& attrs) {
  return g.add(kAdamStep, {in.p, in.g, in.lr, in.scale, in.step, in.m, in.v}, attrs);
}

Value adagrad_step(Graph& g, const AdagradInputs& in, const AdagradAttrs& attrs) {
  return g.add(kAdagradStep, {in.p, in.g, in.lr, in.scale, in.h}, attrs);
}

Value graves_step(Graph& g, const GravesInputs& in, const GravesAttrs& attrs) {
  return g.add(kGravesStep, {in.p, in.g, in.lr, in.scale, in.n, in.q, in.d}, attrs);
}

Value sum_squares(Graph& g, Value x) { return g.add(kSumSquares, {x}); }

}  // namespace ops
}  // namespace keel
