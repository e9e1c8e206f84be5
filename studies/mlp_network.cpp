#include "studies/mlp_network.h"

#include "frontend/nn/layers.h"

namespace keel::study {

task::Prepared Mlp::prepare(const task::DataRequest& request, const task::Assets*) const {
  return {restore({}), in_order(mixture({request.seed, options_.train_rows, options_.test_rows,
                                         options_.features, options_.classes}),
                                options_.order)};
}

std::vector<task::Input> MlpNetwork::inputs(const task::Sizes& sizes) const {
  return data::inputs_of(mini_columns(options_.features), sizes);
}

task::Outputs MlpNetwork::build(nn::Net& net, const task::Inputs& in) const {
  const nn::Norm norm = nn::Norm::parse(options_.norm);
  Value h = in["x"];
  for (std::int64_t layer = 1; layer <= options_.layers; ++layer) {
    h = nn::linear_relu(net, fmt::format("fc{}", layer), h, options_.hidden,
                        {norm, options_.placement});
  }
  const Value logits = nn::linear(net, "logits", h, options_.classes);
  return task::classification(net.graph, logits, in["label"]);
}

}  // namespace keel::study
