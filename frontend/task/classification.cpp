#include "frontend/task/classification.h"

#include "src/ops/loss.h"

namespace keel::task {

std::vector<MetricInfo> error_metric() {
  return {{.name = "error", .unit = "%", .higher_is_better = false, .of = percent_of}};
}

Outputs classification(Graph& graph, Value logits, Value labels) {
  return {.loss_sum = ops::cross_entropy(graph, logits, labels).sum,
          .metrics = {{"error", ops::classification_errors(graph, logits, labels)}},
          .predictions = {}};
}

}  // namespace keel::task
