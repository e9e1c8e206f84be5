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

// g is like p or, with ids, rows of it.
void expect_gradient(const InferContext& c, int ids) {
  const TensorType &p = c.input(UpdateInput::kP), &g = c.input(UpdateInput::kG);
  if (!c.has(ids)) return c.expect(g == p, "g", p.text(), g.text());
  c.expect(p.shape.rank() == 2, "p", "(vocabulary, width) with ids", p.shape.text());
  c.expect_dtype(ids, "ids", DType::kI32);
  c.expect(c.shape(ids).rank() == 1, "ids", "(n)", c.shape(ids).text());
  const TensorType rows{p.dtype, {c.shape(ids)[0], p.shape[1]}};
  c.expect(g == rows, "g", rows.text(), g.text());
}

template <class Attrs>
void expect_common(const InferContext& c, const Attrs& attrs, int ids) {
  c.expect_floating(UpdateInput::kP, "p");
  expect_gradient(c, ids);
  c.expect(!attrs.lazy || c.has(ids), "ids", "ids for a lazy update", "none");
  c.expect_shape(UpdateInput::kLr, "lr", {});
  if (c.has(UpdateInput::kScale)) c.expect_shape(UpdateInput::kScale, "scale", {});
  expect_range(c, "lr_scale", attrs.lr_scale, attrs.lr_scale >= 0);
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
  expect_common(c, attrs, In::kIds);
  expect_share(c, "momentum", attrs.momentum);
  return {c.input(In::kP), c.has(In::kU) ? state(c, In::kU, "u") : absent_type(c.dtype(In::kP))};
}

Types infer_adam(const InferContext& c) {
  using In = AdamInput;
  const auto& attrs = c.attrs.as<AdamAttrs>();
  expect_common(c, attrs, In::kIds);
  expect_share(c, "beta1", attrs.beta1);
  expect_share(c, "beta2", attrs.beta2);
  expect_range(c, "eps", attrs.eps, attrs.eps > 0);
  c.expect_dtype(In::kStep, "step", DType::kI32);
  return {c.input(In::kP), state(c, In::kM, "m"), state(c, In::kV, "v")};
}

Types infer_adagrad(const InferContext& c) {
  using In = AdagradInput;
  const auto& attrs = c.attrs.as<AdagradAttrs>();
  expect_common(c, attrs, In::kIds);
  expect_range(c, "eps", attrs.eps, attrs.eps > 0);
  return {c.input(In::kP), state(c, In::kH, "h")};
}

Types infer_graves(const InferContext& c) {
  using In = RmspropInput;
  const auto& attrs = c.attrs.as<GravesAttrs>();
  expect_common(c, attrs, In::kIds);
  expect_share(c, "keep", attrs.keep);
  expect_share(c, "momentum", attrs.momentum);
  expect_range(c, "eps", attrs.eps, attrs.eps > 0);
  return {c.input(In::kP), state(c, In::kN, "n"), state(c, In::kQ, "q"), state(c, In::kD, "d")};
}

Types infer_sum_squares(const InferContext& c) {
  using In = SumSquaresInput;
  c.expect_floating(In::kX, "x");
  if (c.has(In::kIds)) {
    c.expect(c.shape(In::kX).rank() == 2, "x", "(n, width) with ids", c.shape(In::kX).text());
    c.expect_dtype(In::kIds, "ids", DType::kI32);
    c.expect_shape(In::kIds, "ids", {c.shape(In::kX)[0]});
    const std::int64_t vocabulary = c.attrs.as<SumSquaresAttrs>().vocabulary;
    c.expect(vocabulary >= 0, "vocabulary", "0 or more", fmt::format("{}", vocabulary));
  }
  return {{c.dtype(In::kX), {}}};
}

Types infer_total_norm(const InferContext& c) {
  for (int i = 0; i < int(c.inputs.size()); ++i) {
    c.expect_floating(i, "squares");
    c.expect_dtype(i, "squares", c.dtype(0));
    c.expect_shape(i, "squares", {});
  }
  return {{c.dtype(0), {}}};
}

}  // namespace

const OpInfo kSgdStep{
    .name = "sgd_step",
    .inputs = {"p", "g", "lr", "scale", "u", {"ids", DType::kI32}},
    .attrs = SgdAttrs{},
    .infer = infer_sgd,
    .in_place = {{UpdateInput::kP, UpdateOutput::kP}, {SgdInput::kU, SgdOutput::kU}},
    .keeps_on_guard = true};
const OpInfo kAdamStep{
    .name = "adam_step",
    .inputs = {"p", "g", "lr", "scale", {"step", DType::kI32}, "m", "v", {"ids", DType::kI32}},
    .attrs = AdamAttrs{},
    .infer = infer_adam,
    .in_place = {{UpdateInput::kP, UpdateOutput::kP},
                 {AdamInput::kM, AdamOutput::kM},
                 {AdamInput::kV, AdamOutput::kV}},
    .keeps_on_guard = true};
const OpInfo kAdagradStep{
    .name = "adagrad_step",
    .inputs = {"p", "g", "lr", "scale", "h", {"ids", DType::kI32}},
    .attrs = AdagradAttrs{},
    .infer = infer_adagrad,
    .in_place = {{UpdateInput::kP, UpdateOutput::kP}, {AdagradInput::kH, AdagradOutput::kH}},
    .keeps_on_guard = true};
const OpInfo kRmspropStep{.name = "rmsprop_step",
                          .inputs = {"p", "g", "lr", "scale", "n", "q", "d", {"ids", DType::kI32}},
                          .attrs = GravesAttrs{},
                          .infer = infer_graves,
                          .in_place = {{UpdateInput::kP, UpdateOutput::kP},
                                       {RmspropInput::kN, RmspropOutput::kN},
                                       {RmspropInput::kQ, RmspropOutput::kQ},
                                       {RmspropInput::kD, RmspropOutput::kD}},
                          .keeps_on_guard = true};
const OpInfo kSumSquares{.name = "sum_squares",
                         .inputs = {"x", {"ids", DType::kI32}},
                         .attrs = SumSquaresAttrs{},
                         .infer = infer_sum_squares};
const OpInfo kTotalNorm{.name = "total_norm", .inputs = {"squares"}, .infer = infer_total_norm};

namespace ops {
namespace {

// Ids are an input where they are given.
Value update(Graph& g, const OpInfo& op, std::vector<Value> inputs, Value ids, Attrs attrs) {
  if (ids.valid()) inputs.push_back(ids);
  return g.add(op, std::move(inputs), std::move(attrs));
}

}  // namespace

Value sgd_step(Graph& g, const SgdOperands& in, const SgdAttrs& attrs) {
  return update(g, kSgdStep, {in.p, in.g, in.lr, in.scale, in.u}, in.ids, attrs);
}

Value adam_step(Graph& g, const AdamOperands& in, const AdamAttrs& attrs) {
  return update(g, kAdamStep, {in.p, in.g, in.lr, in.scale, in.step, in.m, in.v}, in.ids, attrs);
}

Value adagrad_step(Graph& g, const AdagradOperands& in, const AdagradAttrs& attrs) {
  return update(g, kAdagradStep, {in.p, in.g, in.lr, in.scale, in.h}, in.ids, attrs);
}

Value rmsprop_step(Graph& g, const GravesOperands& in, const GravesAttrs& attrs) {
  return update(g, kRmspropStep, {in.p, in.g, in.lr, in.scale, in.n, in.q, in.d}, in.ids, attrs);
}

Value sum_squares(Graph& g, Value x) { return g.add(kSumSquares, {x}); }

Value sum_squares(Graph& g, Value rows, Value ids, std::int64_t vocabulary) {
  return g.add(kSumSquares, {rows, ids}, SumSquaresAttrs{vocabulary});
}

Value total_norm(Graph& g, const std::vector<Value>& squares) {
  check(!squares.empty(), ErrorKind::kUsage,
        "[total_norm] squares: expected at least one, got none");
  return g.add(kTotalNorm, squares);
}

}  // namespace ops
}  // namespace keel
