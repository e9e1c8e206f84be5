#include "frontend/task/classification.h"

#include "src/ops/loss.h"

namespace keel::task {

std::vector<MetricInfo> error_metric() {
  return {{.name = "error", .unit = "%", .higher_is_better = false, .of = percent_of}};
}

std::vector<std::string> numbered_classes(std::int64_t count) {
  std::vector<std::string> names;
  for (std::int64_t i = 0; i < count; ++i) names.push_back(std::to_string(i));
  return names;
}

Outputs classification(Graph& graph, Value logits, Value labels) {
  return {.loss_sum = ops::cross_entropy(graph, logits, labels).sum,
          .metrics = {{"error", ops::classification_errors(graph, logits, labels)}},
          .predictions = {{"logits", logits}}};
}

}  // namespace keel::task
