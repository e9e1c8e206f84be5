#include "models/translation/translator.h"

#include <algorithm>

#include "frontend/data/token_batches.h"
#include "frontend/text/bleu.h"
#include "frontend/text/moses_detokenizer.h"
#include "frontend/text/moses_tokenizer.h"
#include "frontend/text/text_file.h"
#include "src/core/error.h"

namespace keel::models {
namespace {

// Sources of a group have lengths of one bucket of this multiple.
constexpr std::int64_t kMultiple = 8;
// Rows of a batch take about so many positions of sources.
constexpr std::int64_t kPositions = 4096;

template <class T>
std::span<const T> row_of(const Tensor& values, std::size_t row) {
  const auto width = static_cast<std::size_t>(values.shape().back());
  return values.as<T>().subspan(row * width, width);
}

text::BleuCounter count(const std::vector<std::string>& answers,
                        const std::vector<std::string>& references,
                        const text::BleuOptions& options = {}) {
  text::BleuCounter counter(options);
  for (std::size_t i = 0; i < answers.size(); ++i) counter.add(answers[i], references[i]);
  return counter;
}

std::vector<std::string> each(std::vector<std::string> lines, const auto& change) {
  for (std::string& line : lines) line = change(line);
  return lines;
}

}  // namespace

Translator::Translator(TranslationTask task, const SearchOptions& options)
    : task_(std::move(task)),
      options_(options),
      batches_(options.recompute ? whole_batches() : step_batches()),
      found_(task_.sources.size(), {task::RankedAnswer{}}) {
  options_.beam.first_filler = task_.subwords.target->dictionary().first_filler();
  for (std::size_t i = 0; i < task_.sources.size(); ++i) {
    const std::int64_t number = task_.first + std::int64_t(i);
    const std::string where = task_.origin.empty() ? fmt::format("sentence {}", number)
                                                   : text::place(task_.origin, number);
    sources_.push_back(task_.subwords.source->encode(task_.sources[i], where));
    if (sources_[i].size() > 1) order_.push_back(i);
  }
  std::ranges::stable_sort(order_, {}, [this](std::size_t i) { return sources_[i].size(); });
}

std::vector<task::RankedAnswer> Translator::ranked_of(const BeamSearch& search) const {
  std::vector<task::RankedAnswer> answers;
  for (const BeamSearch::Hypothesis& h : search.ranked()) {
    std::string words = task_.subwords.target->decode(h.symbols);
    if (task_.as_text) words = text::moses_detokenized(words, {.language = task_.language});
    answers.push_back({std::move(words), search.normalized(h), h.score});
  }
  return answers;
}

void Translator::end_group() {
  for (const SearchSlot& slot : group_.slots) found_[slot.sentence] = ranked_of(slot.search);
  group_.slots.clear();
}

bool Translator::take_part(std::int64_t part, std::int64_t parts) {
  part_ = part;
  parts_ = parts;
  return true;
}

std::int64_t Translator::bucket(std::size_t sentence) const {
  return data::bucket_of(std::ssize(sources_[sentence]), kMultiple);
}

// The number of sentences depends only on the bucket, and so does the program.
std::int64_t Translator::most_of_group(std::int64_t bucket) const {
  const std::int64_t rows = std::min(kPositions / bucket, options_.most_rows);
  return std::max<std::int64_t>(1, rows / options_.beam.beam);
}

// The sentences that follow, as long as they fall into the bucket of the first.
std::size_t Translator::end_of_group(std::size_t begin) const {
  const std::int64_t shared = bucket(order_[begin]);
  const std::size_t most = begin + std::size_t(most_of_group(shared));
  std::size_t end = begin;
  while (end < std::min(most, order_.size()) && bucket(order_[end]) == shared) ++end;
  return end;
}

void Translator::skip_other_parts() {
  while (begun_ < order_.size() && groups_ % parts_ != part_) {
    begun_ = end_of_group(begun_);
    ++groups_;
  }
}

void Translator::begin_group() {
  group_.beam = options_.beam.beam;
  group_.source_length = bucket(order_[begun_]);
  group_.sentences = most_of_group(group_.source_length);
  for (const std::size_t end = end_of_group(begun_); begun_ < end; ++begun_) {
    const std::size_t sentence = order_[begun_];
    searched_.push_back(sentence);
    group_.slots.push_back({sentence, sources_[sentence],
                            BeamSearch(options_.beam, std::size_t(task_.first) - 1 + sentence)});
  }
  ++groups_;
}

const task::Batch* Translator::next() {
  if (!group_.slots.empty() && group_.is_done()) end_group();
  if (group_.slots.empty()) {
    skip_other_parts();
    if (begun_ == order_.size()) return nullptr;
    begin_group();
    asks_ = false;
    if (const task::Batch* first = batches_->begin(group_)) return first;
  }
  asks_ = true;
  return &batches_->step(group_);
}

std::vector<task::FoundAnswers> Translator::found() const {
  std::vector<task::FoundAnswers> found;
  for (const std::size_t i : searched_) found.push_back({std::int64_t(i), found_[i]});
  return found;
}

void Translator::take_found(const task::FoundAnswers& answers) {
  found_.at(std::size_t(answers.question)) = answers.answers;
}

void Translator::take(const std::map<std::string, Tensor>& predictions) {
  if (!asks_) return;
  const Tensor &symbols = predictions.at("symbols"), &scores = predictions.at("scores"),
               &ends = predictions.at("end");
  std::vector<NextSymbols> said;
  for (std::size_t i = 0; i < group_.slots.size(); ++i) {
    BeamSearch& search = group_.slots[i].search;
    if (search.is_done()) continue;
    said.clear();
    for (std::size_t k = 0; k < search.open().size(); ++k) {
      const std::size_t row = group_.row(i, k);
      said.push_back(
          {row_of<std::int32_t>(symbols, row), row_of<float>(scores, row), ends.as<float>()[row]});
    }
    search.take(said);
  }
}

std::vector<std::string> Translator::answers() const {
  std::vector<std::string> answers;
  for (const std::vector<task::RankedAnswer>& of_sentence : found_) {
    answers.push_back(of_sentence.front().text);
  }
  return answers;
}

std::vector<std::vector<task::RankedAnswer>> Translator::ranked(std::int64_t most) const {
  std::vector<std::vector<task::RankedAnswer>> cut = found_;
  for (std::vector<task::RankedAnswer>& of_sentence : cut) {
    of_sentence.resize(std::min(of_sentence.size(), static_cast<std::size_t>(most)));
  }
  return cut;
}

std::map<std::string, task::Ratio> Translator::ratios() const {
  if (task_.references.empty()) return {};
  return {{"bleu", {count(answers(), task_.references).score().bleu, 1}}};
}

std::vector<std::string> Translator::raw_references() const {
  if (task_.raw_references) return task_.raw_references();
  return each(task_.references, [&](const std::string& tokens) {
    return text::moses_detokenized(tokens, {.language = task_.language});
  });
}

std::vector<std::pair<std::string, std::string>> Translator::details() const {
  if (task_.references.empty()) return {};
  const text::MosesTokenizer tokenize({.language = task_.language});
  const auto as_text = [&](const std::string& tokens) {
    return text::moses_detokenized(tokens, {.language = task_.language});
  };
  // Tokens that were made with hyphens cut, "a @-@ b", become those of "a-b".
  const auto whole_hyphens = [&](const std::string& tokens) { return tokenize(as_text(tokens)); };
  const std::vector<std::string> said = answers();
  const text::BleuCounter words = count(said, task_.references);
  const text::BleuCounter compounds =
      count(each(said, whole_hyphens), each(task_.references, whole_hyphens),
            {.tokens = text::BleuTokens::kCompound});
  const text::BleuCounter as_sacrebleu =
      count(each(said, as_text), raw_references(),
            {.tokens = text::BleuTokens::k13a, .lower_case = task_.lower_case});
  std::vector<std::pair<std::string, std::string>> details;
  for (const auto& [name, counter] :
       {std::pair{"bleu", &words}, {"bleu_compound", &compounds}, {"bleu_13a", &as_sacrebleu}}) {
    details.emplace_back(name,
                         fmt::format("{} {}", text_of(counter->score()), counter->signature()));
  }
  return details;
}

}  // namespace keel::models
