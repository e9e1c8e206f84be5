// Measures of how good a model is on a split, as sums over its batches.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "frontend/task/batch.h"
#include "src/graph/graph.h"

namespace keel::task {

// A metric's name, its unit, and which way is better, if either is: a part of a bound may move to
// and fro while the bound gets better. The value on a split is of(sum of sums, sum of counts),
// formed once, at the end.
struct MetricInfo {
  std::string name, unit;  // "error", "%"; a unit may be ""
  bool higher_is_better = false;
  double (*of)(double sum, double count) = nullptr;  // null: a scorer gives the value
  bool has_direction = true;                         // false: neither way is better
};

// Ways to form a value.
double mean_of(double sum, double count);          // sum / count
double percent_of(double sum, double count);       // 100 sum / count
double percent_without(double sum, double count);  // 100 (count - sum) / count: right, from wrong
double perplexity_of(double sum, double count);    // exp(sum / count), with the sum in nats
double bits_of(double sum, double count);          // sum / count / ln 2

// One batch's share of a metric, as scalars () of a graph.
struct Metric {
  std::string name;
  Value sum;
  Value count = {};  // absent: Batch::items
};

// Counts on the host what a graph cannot, from the predictions for every batch of a split. The
// names of its scores are among those of Task::metrics().
class Scorer {
 public:
  virtual ~Scorer() = default;
  // `predictions` by the names that the model gave them, with a row for each row of the batch.
  virtual void take(const Batch& batch, const std::map<std::string, Tensor>& predictions) = 0;
  virtual std::map<std::string, double> scores() = 0;
};

}  // namespace keel::task
