#include "models/class_decoder.h"

#include <algorithm>
#include <cmath>

#include "frontend/task/confusion.h"
#include "src/core/error.h"

namespace keel::models {

ClassDecoder::ClassDecoder(const UnlabelledRows& rows, std::vector<std::string> labels)
    : labels_(std::move(labels)), found_(static_cast<std::size_t>(rows.count)) {
  if (rows.count > 0) ask(rows.rows, rows.batch);
}

void ClassDecoder::answer(std::int64_t row, std::int64_t place,
                          const std::map<std::string, Tensor>& predictions) {
  found_[static_cast<std::size_t>(row)] = ranked_classes(predictions.at("logits"), place);
}

std::vector<std::string> ClassDecoder::answers() const {
  std::vector<std::string> answers;
  for (const auto& classes : found_) answers.push_back(name_of(classes.front()));
  return answers;
}

std::vector<std::vector<task::RankedAnswer>> ClassDecoder::ranked(std::int64_t most) const {
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

// The classes in descending order of their logits. Of two equal logits the one with the smaller
// number comes first, as in the metrics of a graph.
std::vector<ClassDecoder::ScoredClass> ClassDecoder::ranked_classes(const Tensor& logits,
                                                                    std::int64_t place) {
  std::vector<ScoredClass> classes;
  for (const double p : task::log_probabilities(logits, place)) {
    check(!std::isnan(p), ErrorKind::kDiverged,
          "the network's outputs are not finite: there is no answer");
    classes.emplace_back(std::int32_t(classes.size()), p);
  }
  const std::int64_t first = place * std::ssize(classes);
  std::ranges::stable_sort(classes, std::ranges::greater(),
                           [&](const ScoredClass& c) { return logits.at(first + c.first); });
  return classes;
}

std::unique_ptr<task::Decoder> classify(const data::CsvTable& table,
                                        std::span<const std::string> lines, std::int64_t first) {
  auto rows = std::make_shared<data::TableRows>(table.read_lines(lines, first), table.columns());
  return std::make_unique<ClassDecoder>(UnlabelledRows{std::move(rows), std::ssize(lines)},
                                        table.classes);
}

}  // namespace keel::models
