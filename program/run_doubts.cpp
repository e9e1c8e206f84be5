#include "program/run_doubts.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "frontend/train/evaluator.h"

namespace keel::cli {
namespace {

constexpr double kExploded = 10;  // times the first loss

std::optional<std::string> doubt_of_warmup(const train::Job& job, std::int64_t updates) {
  const std::int64_t warmup = job.train().warmup;
  if (warmup == 0 || updates > warmup) return std::nullopt;
  return fmt::format(
      "all {} updates lie within the warm-up of {} (train.warmup), in which the learning rate has "
      "not yet reached train.lr: a smaller train.batch or more train.epochs gives more updates",
      updates, warmup);
}

std::optional<std::string> doubt_of_loss(const train::Summary& summary) {
  const double first = summary.first_loss, last = std::max(summary.train_loss, summary.valid.loss);
  if (!(first > 0 && last > kExploded * first)) return std::nullopt;
  return fmt::format(
      "the loss exploded: {:.4g} in the first update, {:.4g} at the end; a smaller train.lr, a "
      "warm-up or a limit of the gradients (train.clip) may help",
      first, last);
}

// The rows of each class.
std::vector<std::int64_t> class_counts(task::Stream& rows, std::size_t label, std::size_t classes) {
  std::vector<std::int64_t> counts(classes, 0);
  for (std::int64_t step = 0; step < rows.steps(0); ++step) {
    for (const std::int32_t of_row : rows.at(0, step).values[label].as<std::int32_t>()) {
      if (of_row >= 0) ++counts.at(std::size_t(of_row));
    }
  }
  return counts;
}

// The share of rows, in percent, that a classifier gets right; nothing of other tasks.
std::optional<double> percent_right(const train::Evaluation& e) {
  if (e.metrics.empty()) return std::nullopt;
  const train::Measured& first = e.metrics.front();
  if (first.info.name == "accuracy") return first.value;
  return first.info.name == "error" ? std::optional(100 - first.value) : std::nullopt;
}

std::optional<std::string> doubt_of_chance(const train::Job& job, const train::Summary& summary) {
  const std::vector<std::string> names = job.network().class_names();
  const train::Evaluation& test = summary.best_test ? *summary.best_test : summary.test;
  const std::optional<double> right = percent_right(test);
  if (names.empty() || !right) return std::nullopt;
  const std::vector<task::Input> inputs = job.network().inputs(job.network().sizes(1));
  const auto label = std::ranges::find(inputs, "label", &task::Input::name);
  if (label == inputs.end()) return std::nullopt;
  const auto rows = job.splits().stream(task::Split::kTest, train::evaluation_options(job));
  const std::vector<std::int64_t> counts =
      class_counts(*rows, std::size_t(label - inputs.begin()), names.size());
  const auto most = std::ranges::max_element(counts);
  const double share = double(*most) / double(test.rows);
  const double deviation = std::sqrt(share * (1 - share) / double(test.rows));
  if (*right > 100 * (share + 2 * deviation)) return std::nullopt;
  return fmt::format(
      "{:.2f} % of the test rows are right, which is no better than chance: '{}' for every row "
      "would be right in {:.2f} %",
      *right, names[std::size_t(most - counts.begin())], 100 * share);
}

}  // namespace

std::vector<std::string> doubts_of(const train::Job& job, const train::Summary& summary) {
  std::vector<std::string> doubts;
  for (auto& doubt : {doubt_of_warmup(job, summary.state.step), doubt_of_loss(summary),
                      doubt_of_chance(job, summary)}) {
    if (doubt) doubts.push_back(*doubt);
  }
  return doubts;
}

}  // namespace keel::cli
