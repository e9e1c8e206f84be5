#include "models/text_classifier/line_decoder.h"

#include <algorithm>
#include <cmath>

#include "frontend/task/confusion.h"

namespace keel::models {

LineDecoder::LineDecoder(std::shared_ptr<const data::TextRows> rows,
                         std::vector<std::string> labels)
    : labels_(std::move(labels)), found_(static_cast<std::size_t>(rows->size())) {
  constexpr std::int64_t kTokens = 4096;
  if (rows->size() > 0) ask(std::move(rows), kTokens);
}

void LineDecoder::answer(std::int64_t row, std::int64_t place,
                         const std::map<std::string, Tensor>& predictions) {
  found_[static_cast<std::size_t>(row)] = ranked_classes(predictions.at("logits"), place);
}

std::vector<std::string> LineDecoder::answers() const {
  std::vector<std::string> answers;
  for (const auto& classes : found_) answers.push_back(name_of(classes.front()));
  return answers;
}

std::vector<std::vector<task::RankedAnswer>> LineDecoder::ranked(std::int64_t most) const {
  std::vector<std::vector<task::RankedAnswer>> all;
  for (const auto& classes : found_) {
    auto& answers = all.emplace_back();
    for (const ScoredClass& scored : classes) {
      if (std::ssize(answers) == most) break;
      answers.push_back({name_of(scored), std::exp(scored.second), scored.second});
    }
  }
  return all;
}

// Of equal logits that with the smaller number comes first, as in the metrics of a graph.
std::vector<LineDecoder::ScoredClass> LineDecoder::ranked_classes(const Tensor& logits,
                                                                  std::int64_t place) {
  std::vector<ScoredClass> classes;
  for (const double p : task::log_probabilities(logits, place)) {
    classes.emplace_back(std::int32_t(classes.size()), p);
  }
  const std::int64_t first = place * std::ssize(classes);
  std::ranges::stable_sort(classes, std::ranges::greater(),
                           [&](const ScoredClass& c) { return logits.at(first + c.first); });
  return classes;
}

}  // namespace keel::models
