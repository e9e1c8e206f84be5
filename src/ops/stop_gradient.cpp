#include "src/ops/stop_gradient.h"

namespace keel {
namespace {

std::vector<TensorType> infer(const InferContext& c) { return {c.input(0)}; }
void backward(BackwardContext&) {}

}  // namespace

const OpInfo kStopGradient{.name = "stop_gradient",
                           .infer = infer,
                           .backward = backward,
                           .gradient = GradientKind::kDetached,
                           .view = View::kWhole};

namespace ops {

Value stop_gradient(Graph& g, Value x) { return g.add(kStopGradient, {x}); }

}  // namespace ops
}  // namespace keel
