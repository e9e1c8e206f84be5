#include "src/ops/stop_gradient.h"

#include "src/ops/elementwise.h"

namespace keel {
namespace {

std::vector<TensorType> infer(const InferContext& c) { return {c.input(0)}; }
void backward(BackwardContext&) {}

std::vector<TensorType> infer_clip(const InferContext& c) {
  const double limit = c.attrs.as<ClipGradientAttrs>().limit;
  c.expect_floating(0, "x");
  c.expect(limit > 0, "limit", "above 0", fmt::format("{}", limit));
  return {c.input(0)};
}

void backward_clip(BackwardContext& c) {
  const double limit = c.attrs().as<ClipGradientAttrs>().limit;
  Graph& g = c.graph;
  const DType dtype = c.type(c.grad()).dtype;
  const Value above = ops::maximum(g, c.grad(), g.constant(-limit, dtype));
  c.set(0, ops::minimum(g, above, g.constant(limit, dtype)));
}

}  // namespace

const OpInfo kStopGradient{.name = "stop_gradient",
                           .inputs = {{"x", kAnyType}},
                           .infer = infer,
                           .backward = backward,
                           .gradient = GradientKind::kDetached,
                           .view = View::kWhole};
const OpInfo kClipGradient{.name = "clip_gradient",
                           .inputs = {"x"},
                           .attrs = ClipGradientAttrs{},
                           .infer = infer_clip,
                           .backward = backward_clip,
                           .gradient = GradientKind::kSurrogate,
                           .view = View::kWhole};

namespace ops {

Value stop_gradient(Graph& g, Value x) { return g.add(kStopGradient, {x}); }

Value clip_gradient(Graph& g, Value x, double limit) {
  return g.add(kClipGradient, {x}, ClipGradientAttrs{limit});
}

}  // namespace ops
}  // namespace keel
