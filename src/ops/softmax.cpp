#include "src/ops/softmax.h"

namespace keel {
namespace {

std::vector<TensorType> infer(const InferContext& c) {
  c.expect_floating(0, "x");
  c.expect(c.shape(0).rank() >= 1 && c.shape(0).back() >= 1, "x", "(..., width >= 1)",
           c.shape(0).text());
  return {c.input(0)};
}

std::vector<TensorType> infer_backward(const InferContext& c) {
  using In = SoftmaxBackwardInput;
  c.expect_shape(In::kY, "y", c.shape(In::kDy));
  return {c.input(In::kDy)};
}

void backward_softmax(BackwardContext& c) {
  c.set(0, c.graph.add(kSoftmaxBackward, {c.grad(), c.output(0)}));
}

void backward_log_softmax(BackwardContext& c) {
  c.set(0, c.graph.add(kLogSoftmaxBackward, {c.grad(), c.output(0)}));
}

}  // namespace

const OpInfo kSoftmax{.name = "softmax",
                      .inputs = {"x"},
                      .infer = infer,
                      .backward = backward_softmax,
                      .gradient = GradientKind::kExact,
                      .in_place = {{0, 0}}};
const OpInfo kLogSoftmax{.name = "log_softmax",
                         .inputs = {"x"},
                         .infer = infer,
                         .backward = backward_log_softmax,
                         .gradient = GradientKind::kExact,
                         .in_place = {{0, 0}}};
const OpInfo kSoftmaxBackward{.name = "softmax_backward",
                              .inputs = {"dy", "y"},
                              .infer = infer_backward,
                              .in_place = {{SoftmaxBackwardInput::kDy, 0}}};
const OpInfo kLogSoftmaxBackward{.name = "log_softmax_backward",
                                 .inputs = {"dy", "y"},
                                 .infer = infer_backward,
                                 .in_place = {{SoftmaxBackwardInput::kDy, 0}}};

namespace ops {

Value softmax(Graph& g, Value x) { return g.add(kSoftmax, {x}); }
Value log_softmax(Graph& g, Value x) { return g.add(kLogSoftmax, {x}); }

}  // namespace ops
}  // namespace keel
