#include "src/ops/multilinear_attention.h"

namespace keel {
namespace {

using In = MultilinearInput;
using Types = std::vector<TensorType>;

void expect_operands(const InferContext& c) {
  const Shape& a = c.shape(In::kA);
  c.expect_floating(In::kA, "a");
  c.expect(a.rank() == 3 && a[1] >= 1 && a[2] >= 1, "a", "(b, positions >= 1, rank >= 1)",
           a.text());
  for (const auto& [place, name] : {std::pair{In::kC, "c"}, {In::kK, "k"}, {In::kV, "v"}}) {
    c.expect_shape(place, name, a);
  }
  c.expect_shape(In::kP, "p", {a[1], a[2]});
  const Shape& out = c.shape(In::kOut);
  const std::int64_t pairs = checked_multiply(a[1], a[1]);
  c.expect(out.rank() == 2 && out[0] == pairs && out[1] >= 1, "out",
           fmt::format("({}, features >= 1)", pairs), out.text());
  for (int place = In::kC; place <= In::kOut; ++place) {
    c.expect_dtype(place, input_name(c.op, place), c.dtype(In::kA));
  }
}

Types infer(const InferContext& c) {
  expect_operands(c);
  const Shape& a = c.shape(In::kA);
  return {{c.dtype(In::kA), {a[0], a[1], c.shape(In::kOut)[1]}}};
}

Types infer_backward(const InferContext& c) {
  const Types y = infer(c);
  c.expect_shape(In::kDy, "dy", y[0].shape);
  c.expect_dtype(In::kDy, "dy", y[0].dtype);
  Types gradients;
  for (int place = In::kA; place <= In::kOut; ++place) gradients.push_back(c.input(place));
  return gradients;
}

void backward(BackwardContext& c) {
  std::vector<Value> inputs;
  for (int place = In::kA; place <= In::kOut; ++place) inputs.push_back(c.input(place));
  inputs.push_back(c.grad());
  const Value d = c.graph.add(kMultilinearAttentionBackward, inputs, c.attrs());
  for (int place = In::kA; place <= In::kOut; ++place) {
    if (c.needs(place)) c.set(place, d.at(place));
  }
}

}  // namespace

MultilinearSizes multilinear_sizes(const Shape& a, const Shape& out) {
  return {a[0], a[1], a[2], out[1]};
}

const OpInfo kMultilinearAttention{.name = "multilinear_attention",
                                   .inputs = {"a", "c", "k", "p", "v", "out"},
                                   .attrs = MultilinearAttrs{},
                                   .infer = infer,
                                   .backward = backward,
                                   .gradient = GradientKind::kExact};
const OpInfo kMultilinearAttentionBackward{.name = "multilinear_attention_backward",
                                           .inputs = {"a", "c", "k", "p", "v", "out", "dy"},
                                           .attrs = MultilinearAttrs{},
                                           .infer = infer_backward};

namespace ops {

Value multilinear_attention(Graph& g, const MultilinearOperands& operands,
                            const MultilinearAttrs& attrs) {
  const auto& [a, c, k, p, v, out] = operands;
  return g.add(kMultilinearAttention, {a, c, k, p, v, out}, attrs);
}

}  // namespace ops
}  // namespace keel
