#include "src/ops/attention_window.h"

namespace keel {
namespace {

using In = AttentionWindowInput;
using Out = AttentionWindowOutput;

void expect_window(const InferContext& c) {
  const Shape &before = c.shape(In::kBefore), &text = c.shape(In::kText);
  c.expect_floating(In::kComponents, "components");
  c.expect(before.rank() == 2 && before[1] >= 1, "kappa", "(rows, bumps >= 1)", before.text());
  c.expect_dtype(In::kBefore, "kappa", c.dtype(In::kComponents));
  c.expect_shape(In::kComponents, "components", Shape{before[0], 3 * before[1]});
  c.expect_dtype(In::kText, "text", DType::kI32);
  c.expect(text.rank() == 2 && text[0] == before[0] && text[1] >= 1, "text",
           fmt::format("({}, symbols >= 1)", before[0]), text.text());
}

std::vector<TensorType> infer(const InferContext& c) {
  expect_window(c);
  const std::int64_t symbols = c.attrs.as<AttentionWindowAttrs>().symbols;
  c.expect(symbols >= 1, "symbols", ">= 1", fmt::format("{}", symbols));
  const DType dtype = c.dtype(In::kComponents);
  const Shape& text = c.shape(In::kText);
  return {{dtype, {text[0], symbols}}, c.input(In::kBefore), {dtype, text}};
}

std::vector<TensorType> infer_backward(const InferContext& c) {
  expect_window(c);
  const Shape& text = c.shape(In::kText);
  if (c.has(In::kDw)) {
    c.expect_shape(In::kDw, "dw", {text[0], c.attrs.as<AttentionWindowAttrs>().symbols});
  }
  if (c.has(In::kDkappa)) c.expect_shape(In::kDkappa, "dkappa", c.shape(In::kKappa));
  if (c.has(In::kDphi)) c.expect_shape(In::kDphi, "dphi", text);
  return {c.input(In::kComponents), c.input(In::kKappa)};
}

void backward(BackwardContext& c) {
  const Value dcomponents =
      c.graph.add(kAttentionWindowBackward,
                  {c.input(In::kComponents), c.output(Out::kKappa), c.input(In::kText),
                   c.grad(Out::kW), c.grad(Out::kKappa), c.grad(Out::kPhi)},
                  c.attrs());
  if (c.needs(In::kComponents)) c.set(In::kComponents, dcomponents);
  if (c.needs(In::kBefore)) c.set(In::kBefore, dcomponents.at(AttentionWindowGradient::kDbefore));
}

}  // namespace

AttentionWindowSizes attention_window_sizes(const Shape& before, const Shape& text) {
  return {before[0], before[1], text[1]};
}

const OpInfo kAttentionWindow{.name = "attention_window",
                              .inputs = {"components", "kappa", {"text", DType::kI32}},
                              .attrs = AttentionWindowAttrs{},
                              .infer = infer,
                              .backward = backward,
                              .gradient = GradientKind::kExact};
const OpInfo kAttentionWindowBackward{
    .name = "attention_window_backward",
    .inputs = {"components", "kappa", {"text", DType::kI32}, "dw", "dkappa", "dphi"},
    .attrs = AttentionWindowAttrs{},
    .infer = infer_backward};

namespace ops {

AttentionWindow attention_window(Graph& g, Value components, Value before, Value text,
                                 std::int64_t symbols) {
  const Value w =
      g.add(kAttentionWindow, {components, before, text}, AttentionWindowAttrs{symbols});
  return {w, w.at(Out::kKappa), w.at(Out::kPhi)};
}

}  // namespace ops
}  // namespace keel
