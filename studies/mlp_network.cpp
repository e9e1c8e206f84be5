#include "studies/mlp_network.h"

#include "frontend/nn/layers.h"
#include "src/ops/elementwise.h"
#include "src/ops/loss.h"
#include "studies/mini_data.h"

namespace keel::study {

task::Splits MlpNetwork::load(const task::DataRequest& request) const {
  return mixture(
      {request.seed, options_.train_rows, options_.test_rows, options_.features, options_.classes});
}

std::vector<task::InputSpec> MlpNetwork::inputs() const {
  return {{"x", DType::kF32, {options_.features}}, {"label", DType::kI32, {}}};
}

task::Outputs MlpNetwork::build(nn::Net& net, std::span<const Value> inputs) const {
  const nn::Norm norm = nn::Norm::parse(options_.norm);
  Value h = inputs[0];
  for (std::int64_t layer = 1; layer <= options_.layers; ++layer) {
    const std::string name = fmt::format("fc{}", layer);
    h = nn::linear(net, name, h, options_.hidden, {.bias = !norm.has_bias(), .norm = norm});
    h = ops::relu(net.graph, h);
  }
  const Value logits = nn::linear(net, "logits", h, options_.classes);
  return {ops::cross_entropy(net.graph, logits, inputs[1]).mean,
          ops::classification_errors(net.graph, logits, inputs[1])};
}

}  // namespace keel::study
