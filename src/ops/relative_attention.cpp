#include "src/ops/relative_attention.h"

#include <cmath>

#include "src/ops/attention.h"
#include "src/ops/elementwise.h"
#include "src/ops/product_type.h"

namespace keel {
namespace {

using In = RelativeAttentionInput;
using Types = std::vector<TensorType>;

std::string number(auto value) { return fmt::format("{}", value); }

void expect_attrs(const InferContext& c) {
  const auto& attrs = c.attrs.as<RelativeAttentionAttrs>();
  const std::int64_t d = c.shape(In::kQk).back();
  c.expect(attrs.heads >= 1 && d >= 1 && d % attrs.heads == 0, "heads",
           fmt::format("a divisor of the {} features", d), number(attrs.heads));
  c.expect(d / attrs.heads <= kWidestHead, "width of a head",
           fmt::format("at most {}", kWidestHead), number(d / attrs.heads));
  c.expect(std::isfinite(attrs.scale), "scale", "a finite number", number(attrs.scale));
  c.expect(attrs.window >= 0, "window", "0 or more", number(attrs.window));
}

void expect_operands(const InferContext& c) {
  const Shape& q = c.shape(In::kQk);
  c.expect_floating(In::kQk, "qk");
  c.expect(q.rank() == 3, "qk", "(b, tq, d)", q.text());
  c.expect_shape(In::kQp, "qp", q);
  const Shape& k = c.shape(In::kK);
  c.expect(k.rank() == 3 && k[0] == q[0] && k[1] >= q[1] && k[2] == q[2], "k",
           fmt::format("({}, {} or more, {})", q[0], q[1], q[2]), k.text());
  c.expect_shape(In::kV, "v", k);
  const Shape& p = c.shape(In::kP);
  c.expect(p.rank() == 2 && p[0] >= 1 && p[0] <= k[1] && p[1] == q[2], "p",
           fmt::format("(1 to {}, {})", k[1], q[2]), p.text());
  for (const auto& [place, name] :
       {std::pair{In::kQp, "qp"}, {In::kK, "k"}, {In::kV, "v"}, {In::kP, "p"}}) {
    c.expect_dtype(place, name, c.dtype(In::kQk));
  }
  if (c.has(In::kFilled)) {
    c.expect_dtype(In::kFilled, "filled", DType::kI32);
    c.expect_shape(In::kFilled, "filled", {q[0]});
  }
  expect_attrs(c);
}

// The result, and the gradients: of bf16 factors they are float32.
TensorType wide(const InferContext& c, int place) {
  return {product_type(c.dtype(place)), c.shape(place)};
}

TensorType lse_type(const InferContext& c) {
  const Shape& q = c.shape(In::kQk);
  return {product_type(c.dtype(In::kQk)), {q[0], c.attrs.as<RelativeAttentionAttrs>().heads, q[1]}};
}

Types infer(const InferContext& c) {
  expect_operands(c);
  return {wide(c, In::kQk), lse_type(c)};
}

Types infer_backward(const InferContext& c) {
  expect_operands(c);
  c.expect_shape(In::kY, "y", c.shape(In::kQk));
  c.expect_shape(In::kLse, "lse", lse_type(c).shape);
  c.expect_shape(In::kDy, "dy", c.shape(In::kQk));
  for (int place : {In::kY, In::kLse, In::kDy}) {
    c.expect_dtype(place, "what the forward saved, or dy", product_type(c.dtype(In::kQk)));
  }
  return {wide(c, In::kQk), wide(c, In::kQp), wide(c, In::kK), wide(c, In::kV), wide(c, In::kP)};
}

void backward(BackwardContext& c) {
  check(!c.grad(RelativeAttentionOutput::kLse).valid(), ErrorKind::kUsage,
        "[relative_attention] lse: expected no use but by the backward, got a gradient");
  std::vector<Value> inputs;
  for (int i = In::kQk; i <= In::kFilled; ++i) inputs.push_back(c.input(i));
  for (Value v :
       {c.output(RelativeAttentionOutput::kY), c.output(RelativeAttentionOutput::kLse), c.grad()}) {
    inputs.push_back(v);
  }
  const Value d = c.graph.add(kRelativeAttentionBackward, inputs, c.attrs());
  for (int i = In::kQk; i <= In::kP; ++i) {
    if (c.needs(i)) c.set(i, d.at(i));
  }
}

}  // namespace

RelativeSizes relative_sizes(const Shape& q, const Shape& k, const Shape& p, std::int64_t heads) {
  return {q[0], heads, q[1], k[1], q[2] / heads, p[0]};
}

double relative_scale(const RelativeAttentionAttrs& attrs, std::int64_t width) {
  return attrs.scale != 0 ? attrs.scale : 1 / std::sqrt(double(width));
}

const OpInfo kRelativeAttention{.name = "relative_attention",
                                .inputs = {"qk", "qp", "k", "v", "p", {"filled", DType::kI32}},
                                .attrs = RelativeAttentionAttrs{},
                                .infer = infer,
                                .backward = backward,
                                .gradient = GradientKind::kExact};
const OpInfo kRelativeAttentionBackward{
    .name = "relative_attention_backward",
    .inputs = {"qk", "qp", "k", "v", "p", {"filled", DType::kI32}, "y", "lse", "dy"},
    .attrs = RelativeAttentionAttrs{},
    .infer = infer_backward};

namespace ops {

Value relative_attention(Graph& g, const RelativeAttentionOperands& operands,
                         const RelativeAttentionAttrs& attrs) {
  const auto& [q, k, v, p, u, w, filled] = operands;
  return g.add(kRelativeAttention, {add(g, q, u), add(g, q, w), k, v, p, filled}, attrs);
}

}  // namespace ops
}  // namespace keel
