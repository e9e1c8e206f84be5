#include "src/ops/recurrent.h"

namespace keel {
namespace {

using Types = std::vector<TensorType>;

// The type of the state (rows, width) at place `before`, with the mask at place `mask` checked.
TensorType state_of(const InferContext& c, int before, int mask) {
  c.expect_floating(before, "state");
  c.expect(c.shape(before).rank() == 2, "state", "(rows, width)", c.shape(before).text());
  if (c.has(mask)) {
    c.expect_dtype(mask, "mask", DType::kU8);
    c.expect_shape(mask, "mask", {c.shape(before)[0]});
  }
  return c.input(before);
}

// A tensor of `parts` states side by side.
TensorType parts_of(const TensorType& state, std::int64_t parts) {
  return {state.dtype, {state.shape[0], checked_multiply(parts, state.shape[1])}};
}

void expect_parts(const InferContext& c, int place, const char* name, const TensorType& state,
                  std::int64_t parts) {
  if (!c.has(place)) return;
  c.expect_dtype(place, name, state.dtype);
  c.expect_shape(place, name, parts_of(state, parts).shape);
}

Types infer_lstm_cell(const InferContext& c) {
  using In = LstmCellInput;
  const TensorType state = state_of(c, In::kBefore, In::kMask);
  c.input(In::kU), c.input(In::kW);
  expect_parts(c, In::kU, "u", state, 4);
  expect_parts(c, In::kW, "w", state, 4);
  return {state, state, parts_of(state, 3)};
}

Types infer_lstm_cell_backward(const InferContext& c) {
  using In = LstmCellBackwardInput;
  const TensorType state = state_of(c, In::kBefore, In::kMask);
  expect_parts(c, In::kFig, "[f i g]", state, 3);
  expect_parts(c, In::kO, "o", state, 1);
  expect_parts(c, In::kDc, "dc", state, 1);
  expect_parts(c, In::kDo, "do", state, 1);
  return {parts_of(state, 4), state};
}

Types infer_lstm_output(const InferContext& c) {
  using In = LstmOutputInput;
  const TensorType state = state_of(c, In::kO, In::kMask);
  c.input(In::kN);
  expect_parts(c, In::kN, "n", state, 1);
  expect_parts(c, In::kBefore, "state before", state, 1);
  c.expect(c.has(In::kBefore) == c.has(In::kMask), "state before", "one with a mask, none without",
           c.has(In::kBefore) ? "one" : "none");
  return {state, state};
}

Types infer_lstm_output_backward(const InferContext& c) {
  using In = LstmOutputBackwardInput;
  const TensorType state = state_of(c, In::kO, In::kMask);
  expect_parts(c, In::kTanh, "tanh(n)", state, 1);
  expect_parts(c, In::kDh, "dh", state, 1);
  return {state, state, c.has(In::kMask) ? state : absent_type(state.dtype)};
}

Types infer_gru_cell(const InferContext& c) {
  using In = GruCellInput;
  const TensorType state = state_of(c, In::kBefore, In::kMask);
  for (const int place : {In::kU, In::kW, In::kA, In::kQ}) c.input(place);
  expect_parts(c, In::kU, "u", state, 2);
  expect_parts(c, In::kW, "w", state, 2);
  expect_parts(c, In::kA, "a", state, 1);
  expect_parts(c, In::kQ, "q", state, 1);
  return {state, parts_of(state, 3)};
}

Types infer_gru_cell_backward(const InferContext& c) {
  using In = GruCellBackwardInput;
  const TensorType state = state_of(c, In::kBefore, In::kMask);
  expect_parts(c, In::kZrk, "[z r k]", state, 3);
  expect_parts(c, In::kQ, "q", state, 1);
  expect_parts(c, In::kDh, "dh", state, 1);
  return {parts_of(state, 2), state, state, state};
}

void backward_lstm_cell(BackwardContext& c) {
  using In = LstmCellInput;
  using Out = LstmCellOutput;
  using Back = LstmCellBackwardOutput;
  const Value first =
      c.graph.add(kLstmCellBackward, {c.output(Out::kFig), c.output(Out::kO), c.input(In::kBefore),
                                      c.grad(Out::kC), c.grad(Out::kO), c.input(In::kMask)});
  for (const int place : {In::kU, In::kW}) {
    if (c.needs(place)) c.set(place, first.at(Back::kDu));
  }
  if (c.needs(In::kBefore)) c.set(In::kBefore, first.at(Back::kDbefore));
}

void backward_lstm_output(BackwardContext& c) {
  using In = LstmOutputInput;
  using Back = LstmOutputBackwardOutput;
  const Value first =
      c.graph.add(kLstmOutputBackward, {c.input(In::kO), c.output(LstmOutputOutput::kTanh),
                                        c.grad(LstmOutputOutput::kH), c.input(In::kMask)});
  if (c.needs(In::kO)) c.set(In::kO, first.at(Back::kDo));
  if (c.needs(In::kN)) c.set(In::kN, first.at(Back::kDn));
  if (c.needs(In::kBefore)) c.set(In::kBefore, first.at(Back::kDbefore));
}

void backward_gru_cell(BackwardContext& c) {
  using In = GruCellInput;
  using Back = GruCellBackwardOutput;
  const Value first = c.graph.add(
      kGruCellBackward, {c.output(GruCellOutput::kZrk), c.input(In::kQ), c.input(In::kBefore),
                         c.grad(GruCellOutput::kH), c.input(In::kMask)});
  for (const int place : {In::kU, In::kW}) {
    if (c.needs(place)) c.set(place, first.at(Back::kDu));
  }
  if (c.needs(In::kA)) c.set(In::kA, first.at(Back::kDa));
  if (c.needs(In::kQ)) c.set(In::kQ, first.at(Back::kDq));
  if (c.needs(In::kBefore)) c.set(In::kBefore, first.at(Back::kDbefore));
}

}  // namespace

const OpInfo kLstmCell{.name = "lstm_cell",
                       .inputs = {"u", "w", "before", {"mask", DType::kU8}},
                       .infer = infer_lstm_cell,
                       .backward = backward_lstm_cell,
                       .gradient = GradientKind::kExact,
                       .in_place = {{LstmCellInput::kBefore, LstmCellOutput::kC}}};
const OpInfo kLstmCellBackward{
    .name = "lstm_cell_backward",
    .inputs = {"fig", "o", "before", "dc", "do", {"mask", DType::kU8}},
    .infer = infer_lstm_cell_backward,
    .in_place = {{LstmCellBackwardInput::kDc, LstmCellBackwardOutput::kDbefore}}};
const OpInfo kLstmOutput{.name = "lstm_output",
                         .inputs = {"o", "n", "before", {"mask", DType::kU8}},
                         .infer = infer_lstm_output,
                         .backward = backward_lstm_output,
                         .gradient = GradientKind::kExact,
                         .in_place = {{LstmOutputInput::kBefore, LstmOutputOutput::kH}}};
const OpInfo kLstmOutputBackward{
    .name = "lstm_output_backward",
    .inputs = {"o", "tanh", "dh", {"mask", DType::kU8}},
    .infer = infer_lstm_output_backward,
    .in_place = {{LstmOutputBackwardInput::kDh, LstmOutputBackwardOutput::kDbefore}}};
const OpInfo kGruCell{.name = "gru_cell",
                      .inputs = {"u", "w", "a", "q", "before", {"mask", DType::kU8}},
                      .infer = infer_gru_cell,
                      .backward = backward_gru_cell,
                      .gradient = GradientKind::kExact,
                      .in_place = {{GruCellInput::kBefore, GruCellOutput::kH}}};
const OpInfo kGruCellBackward{
    .name = "gru_cell_backward",
    .inputs = {"zrk", "q", "before", "dh", {"mask", DType::kU8}},
    .infer = infer_gru_cell_backward,
    .in_place = {{GruCellBackwardInput::kDh, GruCellBackwardOutput::kDbefore}}};

namespace ops {

LstmCell lstm_cell(Graph& g, Value u, Value w, Value before, Value mask) {
  const Value first = g.add(kLstmCell, {u, w, before, mask});
  return {first.at(LstmCellOutput::kC), first.at(LstmCellOutput::kO)};
}

Value lstm_output(Graph& g, Value o, Value n, Value before, Value mask) {
  return g.add(kLstmOutput, {o, n, before, mask});
}

Value gru_cell(Graph& g, const GruCell& cell) {
  return g.add(kGruCell, {cell.u, cell.w, cell.a, cell.q, cell.before, cell.mask});
}

}  // namespace ops
}  // namespace keel
