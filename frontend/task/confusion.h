// Confusions of a classifier, counted on the host: which classes it takes for which.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "frontend/task/metric.h"

namespace keel::task {

// Figures of one class. 0 / 0 is NaN.
//   precision  right / predicted: of the rows predicted as the class, the share that is of it
//   recall     right / rows: of the rows of the class, the share that is predicted as the class
//   f1         2 right / (rows + predicted), the harmonic mean of the two
struct ClassFigures {
  std::int64_t rows = 0, predicted = 0, right = 0;
  double precision() const { return double(right) / double(predicted); }
  double recall() const { return double(right) / double(rows); }
  double f1() const { return 2 * double(right) / double(rows + predicted); }
};

// `rows` rows of class `truth` were predicted as class `predicted`.
struct ConfusedPair {
  std::int32_t truth = 0, predicted = 0;
  std::int64_t rows = 0;
};

// Counts of rows by true and predicted class. Only pairs that occur take memory.
class Confusion {
 public:
  explicit Confusion(std::vector<std::string> labels)
      : labels_(std::move(labels)), figures_(labels_.size()) {}

  // `predicted` is -1 for a row without an answer. Throws Error{kUsage} for another number that is
  // no class.
  void add(std::int32_t truth, std::int32_t predicted);

  const std::vector<std::string>& labels() const { return labels_; }
  std::int64_t classes() const { return std::ssize(labels_); }
  std::int64_t count(std::int32_t truth, std::int32_t predicted) const;
  const ClassFigures& figures(std::int32_t label) const {
    return figures_[static_cast<std::size_t>(label)];
  }
  // The mean of f1 over the classes that have rows or were predicted; NaN if there is none.
  double macro_f1() const;
  // Pairs of two different classes, the most frequent first, at most `most` of them.
  std::vector<ConfusedPair> most_confused(std::size_t most) const;

 private:
  std::vector<std::string> labels_;
  std::map<std::pair<std::int32_t, std::int32_t>, std::int64_t> counts_;
  std::vector<ClassFigures> figures_;
};

// A classifier's answer for one row; -1 and NaN if the row has no answer.
struct Classified {
  std::int32_t truth = -1, predicted = -1;
  double probability = 0;  // of the predicted class
};

// The class with the largest logit of the row, the first among equals as in the metric of a graph,
// and its probability, computed in float64. A row with a NaN has no answer; it counts as wrong.
Classified classified(const Tensor& logits, std::int64_t row);
// The logarithms of the probabilities of all classes of a row, computed in float64.
std::vector<double> log_probabilities(const Tensor& logits, std::int64_t row);

// Counts confusions while a split is evaluated. The model gives "logits" (rows, classes) as a
// prediction; input number `label_input` of a batch has the labels i32 (rows).
class ConfusionScorer : public Scorer {
 public:
  ConfusionScorer(std::vector<std::string> labels, std::size_t label_input)
      : confusion_(std::move(labels)), label_input_(label_input) {}

  void take(const Batch& batch, const std::map<std::string, Tensor>& predictions) override;
  std::map<std::string, double> scores() override { return {}; }

  const Confusion& confusion() const { return confusion_; }
  // Indexed by a row's number in the split.
  const std::vector<Classified>& rows() const { return rows_; }

 private:
  Confusion confusion_;
  std::size_t label_input_;
  std::vector<Classified> rows_;
};

}  // namespace keel::task
