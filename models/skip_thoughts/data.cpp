#include "models/skip_thoughts/data.h"

#include <array>
#include <utility>

#include "frontend/data/read_ahead.h"
#include "frontend/text/lines.h"
#include "models/skip_thoughts/files.h"
#include "models/skip_thoughts/stories.h"
#include "src/core/error.h"

namespace keel::models {
namespace {

// Keeps the first so many sentences; returns how many are beyond.
std::int64_t keep_first_sentences(std::vector<Passage>& passages, std::int64_t count) {
  std::int64_t beyond = 0;
  for (Passage& passage : passages) {
    const std::int64_t kept = std::min(count, std::ssize(passage.sentences));
    beyond += std::ssize(passage.sentences) - kept;
    passage.sentences.resize(std::size_t(kept));
    if (!passage.topics.empty()) passage.topics.resize(std::size_t(kept));
    count -= kept;
  }
  return beyond;
}

std::shared_ptr<const text::Dictionary> count_symbols(const OrderedText& text,
                                                      const ThoughtDataOptions& options) {
  text::WordCounts counts;
  for (const Passage& passage : text.train) {
    for (const std::string& sentence : passage.sentences) {
      for (const std::string_view word : text::words_of(sentence)) ++counts[std::string(word)];
    }
  }
  return std::make_shared<const text::Dictionary>(
      counts, text::DictionaryOptions{.max_symbols = options.symbols - text::Dictionary::kSpecials,
                                      .multiple = 1});
}

}  // namespace

OrderedText load_ordered_text(const ThoughtDataOptions& options) {
  OrderedText text = options.source == "builtin"
                         ? make_stories()
                         : read_ordered_text(options.source, options.lower_case);
  if (options.train_rows == 0) return text;
  const std::int64_t beyond = keep_first_sentences(text.train, options.train_rows);
  if (beyond > 0) {
    text.left_out.push_back({beyond, fmt::format("train_rows is {}", options.train_rows)});
  }
  return text;
}

ThoughtData ThoughtData::load(const ThoughtDataOptions& options) {
  return {load_ordered_text(options), options};
}

ThoughtData::ThoughtData(OrderedText text, const ThoughtDataOptions& options)
    : text_(std::move(text)),
      most_words_(options.most_words),
      dictionary_(options.dictionary ? options.dictionary : count_symbols(text_, options)) {}

std::unique_ptr<task::Stream> ThoughtData::stream(task::Split split,
                                                  const task::StreamOptions& options) const {
  constexpr std::array<const char*, 3> kNames = {"train", "valid", "test"};
  const char* name = kNames[std::size_t(split)];
  const auto passages = [&]() -> std::vector<Passage> {
    if (split == task::Split::kTest) return text_.test();
    return split == task::Split::kTrain ? text_.train : text_.valid;
  };
  auto numbered =
      std::make_shared<const NumberedText>(number_text(passages(), *dictionary_, most_words_));
  check(!numbered->rows.empty(), ErrorKind::kBadInput,
        "[skip_thoughts] {} {}: expected three sentences in a row of at most {} words, got none",
        text_.origin, name, most_words_);
  data::StreamNotes notes{fmt::format("{} {}, {}", text_.name, name, text_.origin), {}};
  if (split == task::Split::kTrain) {
    notes.left_out = text_.left_out;
    if (numbered->dropped > 0) {
      notes.left_out.push_back(
          {numbered->dropped,
           fmt::format("they or a neighbour have more than {} words", most_words_)});
    }
  }
  auto stream = std::make_unique<TripleStream>(std::move(notes), std::move(numbered),
                                               TripleOptions{options.batch, options.shuffle});
  if (!options.shuffle) return stream;
  return std::make_unique<data::ReadAhead>(std::move(stream));
}

}  // namespace keel::models
