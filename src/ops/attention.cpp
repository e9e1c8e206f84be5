#include "src/ops/attention.h"

#include <cmath>

#include "src/ops/product_type.h"

namespace keel {
namespace {

using In = AttentionInput;
using Types = std::vector<TensorType>;

void expect_heads(const InferContext& c, const AttentionAttrs& attrs) {
  const std::int64_t d = c.shape(In::kQ).back();
  const auto number = [](auto value) { return fmt::format("{}", value); };
  c.expect(attrs.heads >= 1 && d >= 1 && d % attrs.heads == 0, "heads",
           fmt::format("a divisor of the {} features", d), number(attrs.heads));
  c.expect(d / attrs.heads <= kWidestHead, "width of a head",
           fmt::format("at most {}", kWidestHead), number(d / attrs.heads));
  c.expect(std::isfinite(attrs.scale), "scale", "a finite number", number(attrs.scale));
}

void expect_dropout(const InferContext& c, const AttentionAttrs& attrs) {
  const auto number = [](auto value) { return fmt::format("{}", value); };
  c.expect(attrs.p >= 0 && attrs.p < 1, "p", "in [0, 1)", number(attrs.p));
  for (const auto& [place, name] : {std::pair{In::kStep, "step"}, {In::kFirstRow, "first_row"}}) {
    if (attrs.p == 0) {
      c.expect(!c.has(place), name, "none without dropout", "one");
      continue;
    }
    c.expect_dtype(place, name, DType::kI32);
    c.expect_shape(place, name, {});
  }
  if (attrs.p == 0) return;
  c.expect(attrs.heads <= kMostDropoutHeads, "heads",
           fmt::format("at most {} with dropout", kMostDropoutHeads), number(attrs.heads));
  for (const auto& [place, name] : {std::pair{In::kQ, "queries"}, {In::kK, "keys"}}) {
    c.expect(c.shape(place)[1] <= kLongestDropout, name,
             fmt::format("at most {} with dropout", kLongestDropout), number(c.shape(place)[1]));
  }
}

void expect_operands(const InferContext& c) {
  const Shape& q = c.shape(In::kQ);
  c.expect_floating(In::kQ, "q");
  c.expect(q.rank() == 3, "q", "(b, tq, d)", q.text());
  const Shape& k = c.shape(In::kK);
  c.expect(k.rank() == 3 && k[0] == q[0] && k[2] == q[2], "k",
           fmt::format("({}, tk, {})", q[0], q[2]), k.text());
  c.expect_shape(In::kV, "v", k);
  c.expect_dtype(In::kK, "k", c.dtype(In::kQ));
  c.expect_dtype(In::kV, "v", c.dtype(In::kQ));
  if (c.has(In::kKeyMask)) {
    c.expect_dtype(In::kKeyMask, "key_mask", DType::kU8);
    c.expect_shape(In::kKeyMask, "key_mask", {k[0], k[1]});
  }
  const auto& attrs = c.attrs.as<AttentionAttrs>();
  expect_heads(c, attrs);
  expect_dropout(c, attrs);
}

// The result, and the gradients: of bf16 factors they are float32.
TensorType wide(const InferContext& c, int place) {
  return {product_type(c.dtype(place)), c.shape(place)};
}

TensorType lse_type(const InferContext& c) {
  const Shape& q = c.shape(In::kQ);
  return {wide(c, In::kQ).dtype, {q[0], c.attrs.as<AttentionAttrs>().heads, q[1]}};
}

Types infer(const InferContext& c) {
  expect_operands(c);
  return {wide(c, In::kQ), lse_type(c)};
}

Types infer_backward(const InferContext& c) {
  expect_operands(c);
  c.expect_shape(In::kY, "y", c.shape(In::kQ));
  c.expect_shape(In::kLse, "lse", lse_type(c).shape);
  c.expect_shape(In::kDy, "dy", c.shape(In::kQ));
  for (int place : {In::kY, In::kLse, In::kDy}) {
    c.expect_dtype(place, "what the forward saved, or dy", wide(c, In::kQ).dtype);
  }
  return {wide(c, In::kQ), wide(c, In::kK), wide(c, In::kV)};
}

void backward(BackwardContext& c) {
  check(!c.grad(AttentionOutput::kLse).valid(), ErrorKind::kUsage,
        "[attention] lse: expected no use but by the backward, got a gradient");
  std::vector<Value> inputs;
  for (int i = In::kQ; i <= In::kFirstRow; ++i) inputs.push_back(c.input(i));
  for (Value v : {c.output(AttentionOutput::kY), c.output(AttentionOutput::kLse), c.grad()}) {
    inputs.push_back(v);
  }
  const Value d = c.graph.add(kAttentionBackward, inputs, c.attrs());
  for (int i : {In::kQ, In::kK, In::kV}) {
    if (c.needs(i)) c.set(i, d.at(i));
  }
}

}  // namespace

AttentionSizes attention_sizes(const Shape& q, const Shape& k, std::int64_t heads) {
  return {q[0], heads, q[1], k[1], q[2] / heads};
}

double attention_scale(const AttentionAttrs& attrs, const AttentionSizes& sizes) {
  return attrs.scale != 0 ? attrs.scale : 1 / std::sqrt(double(sizes.width));
}

const OpInfo kAttention{.name = "attention",
                        .inputs = {"q",
                                   "k",
                                   "v",
                                   {"key_mask", DType::kU8},
                                   {"step", DType::kI32},
                                   {"first_row", DType::kI32}},
                        .attrs = AttentionAttrs{},
                        .infer = infer,
                        .backward = backward,
                        .gradient = GradientKind::kExact};
const OpInfo kAttentionBackward{.name = "attention_backward",
                                .inputs = {"q",
                                           "k",
                                           "v",
                                           {"key_mask", DType::kU8},
                                           {"step", DType::kI32},
                                           {"first_row", DType::kI32},
                                           "y",
                                           "lse",
                                           "dy"},
                                .attrs = AttentionAttrs{},
                                .infer = infer_backward};

namespace ops {

Value attention(Graph& g, const AttentionOperands& operands, AttentionAttrs attrs) {
  const auto& [q, k, v, key_mask, step, first_row] = operands;
  if (attrs.p == 0) return g.add(kAttention, {q, k, v, key_mask, {}, {}}, attrs);
  attrs.stream = stream_of(g.unique_name("attention"));
  return g.add(kAttention, {q, k, v, key_mask, step, first_row}, attrs);
}

}  // namespace ops
}  // namespace keel
