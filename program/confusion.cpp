#include "program/confusion.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "frontend/text/utf8.h"
#include "program/common.h"

namespace keel::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::int64_t kMostInTable = 20, kMostInMatrix = 1000;
constexpr std::size_t kMostPairs = 20, kWidestHeading = 12;

std::string percent(double share) {
  return std::isnan(share) ? "-" : fmt::format("{:.1f}", 100 * share);
}

Json share(double share) { return std::isnan(share) ? Json() : Json(share); }

std::string table(const task::Confusion& confusion) {
  std::vector<std::vector<std::string>> rows{{"true \\ predicted"}};
  for (const std::string& label : confusion.labels()) {
    rows[0].emplace_back(text::clipped(label, kWidestHeading));
  }
  rows[0].insert(rows[0].end(), {"rows", "precision %", "recall %", "F1 %"});
  for (std::int32_t i = 0; i < confusion.classes(); ++i) {
    auto& row = rows.emplace_back();
    row.push_back(confusion.labels()[std::size_t(i)]);
    for (std::int32_t j = 0; j < confusion.classes(); ++j) {
      row.push_back(fmt::format("{}", confusion.count(i, j)));
    }
    const task::ClassFigures& figures = confusion.figures(i);
    row.push_back(fmt::format("{}", figures.rows));
    for (const double part : {figures.precision(), figures.recall(), figures.f1()}) {
      row.push_back(percent(part));
    }
  }
  return table_text(rows);
}

std::string pairs(const task::Confusion& confusion) {
  std::vector<std::vector<std::string>> rows{{"true", "predicted", "rows", "of"}};
  for (const task::ConfusedPair& pair : confusion.most_confused(kMostPairs)) {
    rows.push_back({confusion.labels()[std::size_t(pair.truth)],
                    confusion.labels()[std::size_t(pair.predicted)], fmt::format("{}", pair.rows),
                    fmt::format("{}", confusion.figures(pair.truth).rows)});
  }
  if (rows.size() == 1) return "no two classes were confused\n";
  return fmt::format("of {} classes those that were confused most often:\n{}", confusion.classes(),
                     table_text(rows));
}

Json matrix(const task::Confusion& confusion) {
  Json counts = Json::array();
  for (std::int32_t i = 0; i < confusion.classes(); ++i) {
    Json row = Json::array();
    for (std::int32_t j = 0; j < confusion.classes(); ++j) row.push_back(confusion.count(i, j));
    counts.push_back(std::move(row));
  }
  return counts;
}

Json all_pairs(const task::Confusion& confusion) {
  Json pairs = Json::array();
  for (const task::ConfusedPair& pair : confusion.most_confused(std::size_t(-1))) {
    pairs.push_back({pair.truth, pair.predicted, pair.rows});
  }
  return pairs;
}

}  // namespace

std::unique_ptr<task::ConfusionScorer> confusion_scorer_of(const task::Network& network) {
  std::vector<std::string> classes = network.class_names();
  if (classes.empty()) return nullptr;
  const std::vector<task::Input> inputs = network.inputs(network.sizes(1));
  const auto label = std::ranges::find(inputs, "label", &task::Input::name);
  return std::make_unique<task::ConfusionScorer>(std::move(classes),
                                                 std::size_t(label - inputs.begin()));
}

std::string confusion_text(const task::Confusion& confusion) {
  return fmt::format("{}macro F1 {} %\n",
                     confusion.classes() <= kMostInTable ? table(confusion) : pairs(confusion),
                     percent(confusion.macro_f1()));
}

Json confusion_json(const task::Confusion& confusion) {
  Json classes = Json::array();
  for (std::int32_t i = 0; i < confusion.classes(); ++i) {
    const task::ClassFigures& figures = confusion.figures(i);
    classes.push_back({{"label", confusion.labels()[std::size_t(i)]},
                       {"rows", figures.rows},
                       {"predicted", figures.predicted},
                       {"precision", share(figures.precision())},
                       {"recall", share(figures.recall())},
                       {"f1", share(figures.f1())}});
  }
  Json json{{"labels", confusion.labels()}};
  if (confusion.classes() <= kMostInMatrix) {
    json["counts"] = matrix(confusion);
  } else {
    json["pairs"] = all_pairs(confusion);
  }
  json["classes"] = std::move(classes);
  json["macro_f1"] = share(confusion.macro_f1());
  return json;
}

std::string classified_text(const task::ConfusionScorer& scorer, const task::Stream& rows) {
  const std::vector<std::string>& labels = scorer.confusion().labels();
  std::string text;
  for (std::size_t row = 0; row < scorer.rows().size(); ++row) {
    const task::Classified& found = scorer.rows()[row];
    const bool has_answer = found.predicted >= 0;
    text += fmt::format("{}\t{}\t{}\t{:.6f}\n", rows.number(std::int64_t(row)),
                        labels[std::size_t(found.truth)],
                        has_answer ? labels[std::size_t(found.predicted)] : "", found.probability);
  }
  return text;
}

}  // namespace keel::cli
