// Which classes a classifier takes for which, counted on the host.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "frontend/task/metric.h"

namespace keel::task {

// Of one class. A share of nothing is NaN.
//   precision  rows of the class among those taken for it
//   recall     rows taken for the class among those of it
//   f1         2 right / (rows of it + rows taken for it), the harmonic mean of the two
struct ClassFigures {
  std::int64_t rows = 0, predicted = 0, right = 0;
  double precision() const { return double(right) / double(predicted); }
  double recall() const { return double(right) / double(rows); }
  double f1() const { return 2 * double(right) / double(rows + predicted); }
};

// So many rows of class `truth` were taken for class `predicted`.
struct ConfusedPair {
  std::int32_t truth = 0, predicted = 0;
  std::int64_t rows = 0;
};

// Counts of rows by true and predicted class. Takes memory for the pairs that occur alone.
class Confusion {
 public:
  explicit Confusion(std::vector<std::string> labels)
      : labels_(std::move(labels)), figures_(labels_.size()) {}

  // Throws Error{kUsage} for a number that no class has.
  void add(std::int32_t truth, std::int32_t predicted);

  const std::vector<std::string>& labels() const { return labels_; }
  std::int64_t classes() const { return std::ssize(labels_); }
  std::int64_t count(std::int32_t truth, std::int32_t predicted) const;
  const ClassFigures& figures(std::int32_t label) const {
    return figures_[static_cast<std::size_t>(label)];
  }
  // The mean of f1 over the classes that have rows or were predicted; NaN where none has.
  double macro_f1() const;
  // Pairs of two classes, the most frequent first, up to so many.
  std::vector<ConfusedPair> most_confused(std::size_t most) const;

 private:
  std::vector<std::string> labels_;
  std::map<std::pair<std::int32_t, std::int32_t>, std::int64_t> counts_;
  std::vector<ClassFigures> figures_;
};

// What a classifier says of a row.
struct Classified {
  std::int32_t truth = -1, predicted = -1;
  double probability = 0;  // of the predicted class
};

// The first of the largest of `classes` logits, as the metric of a graph has it, and its
// probability, which is formed in float64.
Classified classified(const Tensor& logits, std::int64_t row);
// The logarithms of the probabilities of all classes of a row, formed in float64.
std::vector<double> log_probabilities(const Tensor& logits, std::int64_t row);

// Looks on while a split is evaluated. The model gives "logits" (rows, classes) as a prediction;
// labels i32 (rows) are the input of number `label_input` in a batch.
class ConfusionScorer : public Scorer {
 public:
  ConfusionScorer(std::vector<std::string> labels, std::size_t label_input)
      : confusion_(std::move(labels)), label_input_(label_input) {}

  void take(const Batch& batch, const std::map<std::string, Tensor>& predictions) override;
  std::map<std::string, double> scores() override { return {}; }

  const Confusion& confusion() const { return confusion_; }
  // By the rows' numbers in the split.
  const std::vector<Classified>& rows() const { return rows_; }

 private:
  Confusion confusion_;
  std::size_t label_input_;
  std::vector<Classified> rows_;
};

}  // namespace keel::task
