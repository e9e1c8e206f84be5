#include "models/word_lm/scorer.h"

#include <algorithm>
#include <numeric>

#include "frontend/text/lines.h"
#include "frontend/text/text_file.h"
#include "models/word_lm/corpus.h"

namespace keel::models {
namespace {

constexpr std::int64_t kMostTogether = 16;                   // segments of a batch
constexpr std::int64_t kMostScores = std::int64_t{1} << 24;  // log p of a batch: 64 MiB

}  // namespace

std::vector<task::Input> score_inputs(const task::Sizes& sizes) {
  const std::int64_t segments = sizes.at(0), length = sizes.at(1);
  return {{"input", {DType::kI32, {segments, length}}}, {"at", {DType::kI32, {segments * length}}}};
}

WordScorer::WordScorer(const text::Vocabulary& vocabulary, std::int64_t length,
                       std::span<const std::string> lines, std::int64_t first)
    : length_(length),
      words_known_(count_of_numbers(vocabulary)),
      together_(std::clamp<std::int64_t>(kMostScores / (length * words_known_), 1, kMostTogether)),
      lines_(lines.begin(), lines.end()) {
  for (std::size_t i = 0; i < lines_.size(); ++i) {
    begins_.push_back(words_.size());
    const text::Line line{lines_[i], first + std::int64_t(i)};
    const LineSource source{"standard input", [&](const TakeLine& take) { take(line); }};
    const std::vector<std::int32_t> numbers = number_words(source, 0, vocabulary);
    words_.insert(words_.end(), numbers.begin(), numbers.end());
  }
}

task::Sizes WordScorer::next_sizes() const {
  const std::int64_t left = targets() - std::ssize(log_p_), whole = left / length_;
  if (whole == 0) return {1, left};
  return {std::min(whole, together_), length_};
}

const task::Batch* WordScorer::next() {
  if (std::ssize(log_p_) >= targets()) return nullptr;
  const task::Sizes sizes = next_sizes();
  if (batch_.sizes != sizes) {
    batch_ = {.sizes = sizes, .values = {}, .rows = {}, .network = std::string(kWordScores)};
    for (const task::Input& input : score_inputs(sizes)) batch_.values.emplace_back(input.type);
    batch_.rows.resize(std::size_t(sizes[0]));
    std::iota(batch_.rows.begin(), batch_.rows.end(), 0);
    batch_.items = double(sizes[0]);
  }
  const auto input = batch_.values[0].as<std::int32_t>(), at = batch_.values[1].as<std::int32_t>();
  const std::size_t from = log_p_.size();
  for (std::size_t place = 0; place < input.size(); ++place) {
    input[place] = words_[from + place];
    at[place] = std::int32_t(std::int64_t(place) * words_known_) + words_[from + place + 1];
  }
  return &batch_;
}

void WordScorer::take(const std::map<std::string, Tensor>& predictions) {
  const auto log_p = predictions.at("log_p").as<float>();
  log_p_.insert(log_p_.end(), log_p.begin(), log_p.end());
}

std::size_t WordScorer::end_of(std::size_t line) const {
  return line + 1 < begins_.size() ? begins_[line + 1] : words_.size();
}

std::vector<std::string> WordScorer::answers() const {
  std::vector<std::string> answers;
  for (std::size_t line = 0; line < lines_.size(); ++line) {
    std::string answer;
    for (std::size_t word = begins_[line]; word < end_of(line); ++word) {
      if (!answer.empty()) answer += ' ';
      answer += word == 0 ? "-" : fmt::format("{:.6f}", log_p_[word - 1]);
    }
    answers.push_back(std::move(answer));
  }
  return answers;
}

std::vector<std::vector<task::RankedAnswer>> WordScorer::ranked(std::int64_t) const {
  std::vector<std::vector<task::RankedAnswer>> ranked;
  for (std::size_t line = 0; line < lines_.size(); ++line) {
    const std::size_t first = std::max<std::size_t>(begins_[line], 1), end = end_of(line);
    double sum = 0;
    for (std::size_t word = first; word < end; ++word) sum += double(log_p_[word - 1]);
    const double count = double(std::max<std::size_t>(end - first, 1));
    ranked.push_back({{lines_[line], sum / count, sum}});
  }
  return ranked;
}

}  // namespace keel::models
