#include "frontend/task/confusion.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "src/core/error.h"

namespace keel::task {

void Confusion::add(std::int32_t truth, std::int32_t predicted) {
  const bool has_answer = predicted != -1;
  for (const std::int32_t label : {truth, has_answer ? predicted : truth}) {
    check(label >= 0 && label < classes(), ErrorKind::kUsage,
          "[confusion] expected a class of 0 to {}, got {}", classes() - 1, label);
  }
  ++figures_[static_cast<std::size_t>(truth)].rows;
  if (!has_answer) return;
  ++counts_[{truth, predicted}];
  ++figures_[static_cast<std::size_t>(predicted)].predicted;
  figures_[static_cast<std::size_t>(truth)].right += truth == predicted;
}

std::int64_t Confusion::count(std::int32_t truth, std::int32_t predicted) const {
  const auto found = counts_.find({truth, predicted});
  return found == counts_.end() ? 0 : found->second;
}

double Confusion::macro_f1() const {
  double sum = 0;
  std::int64_t met = 0;
  for (const ClassFigures& figures : figures_) {
    if (figures.rows + figures.predicted == 0) continue;
    sum += figures.f1();
    ++met;
  }
  return met > 0 ? sum / double(met) : std::numeric_limits<double>::quiet_NaN();
}

std::vector<ConfusedPair> Confusion::most_confused(std::size_t most) const {
  std::vector<ConfusedPair> pairs;
  for (const auto& [pair, rows] : counts_) {
    if (pair.first != pair.second) pairs.push_back({pair.first, pair.second, rows});
  }
  // Pairs that are equally frequent stay in the order of their classes.
  std::ranges::stable_sort(pairs, std::ranges::greater(), &ConfusedPair::rows);
  pairs.resize(std::min(pairs.size(), most));
  return pairs;
}

std::vector<double> log_probabilities(const Tensor& logits, std::int64_t row) {
  const std::int64_t classes = logits.shape().back();
  std::vector<double> result;
  for (std::int64_t k = 0; k < classes; ++k) result.push_back(logits.at(row * classes + k));
  const double largest = std::ranges::max(result);
  double sum = 0;
  for (const double logit : result) sum += std::exp(logit - largest);
  for (double& logit : result) logit -= largest + std::log(sum);
  return result;
}

Classified classified(const Tensor& logits, std::int64_t row) {
  const std::int64_t classes = logits.shape().back();
  std::int64_t best = 0;
  for (std::int64_t k = 0; k < classes; ++k) {
    if (std::isnan(logits.at(row * classes + k))) return {-1, -1, NAN};
    if (logits.at(row * classes + k) > logits.at(row * classes + best)) best = k;
  }
  const double log_probability = log_probabilities(logits, row)[static_cast<std::size_t>(best)];
  return {-1, static_cast<std::int32_t>(best), std::exp(log_probability)};
}

void ConfusionScorer::take(const Batch& batch, const std::map<std::string, Tensor>& predictions) {
  const Tensor& logits = predictions.at("logits");
  const std::span<const std::int32_t> labels = batch.values.at(label_input_).as<std::int32_t>();
  for (std::size_t place = 0; place < batch.rows.size(); ++place) {
    if (batch.rows[place] < 0) continue;  // padding
    const auto row = static_cast<std::size_t>(batch.rows[place]);
    rows_.resize(std::max(rows_.size(), row + 1));
    rows_[row] = classified(logits, static_cast<std::int64_t>(place));
    rows_[row].truth = labels[place];
    confusion_.add(rows_[row].truth, rows_[row].predicted);
  }
}

}  // namespace keel::task
