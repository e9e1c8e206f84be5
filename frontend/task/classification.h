// Parts of tasks that put each row into one of several classes.
#pragma once

#include "frontend/task/network.h"

namespace keel::task {

// The share of wrong rows.
std::vector<MetricInfo> error_metric();

// "0" to "N - 1", as names of classes that have none.
std::vector<std::string> numbered_classes(std::int64_t count);

// Cross entropy of logits (rows, classes) and labels i32 (rows), and the number of rows whose
// argmax, the first among equal logits, is not the label. Rows of padding have the label -1 and do
// not count. The logits are a prediction.
Outputs classification(Graph& graph, Value logits, Value labels);

}  // namespace keel::task
