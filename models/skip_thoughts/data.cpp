#include "models/skip_thoughts/data.h"

#include <algorithm>
#include <utility>

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

}  // namespace

OrderedText read_thoughts(const task::DataRequest& request, bool lower_case) {
  OrderedText text = request.source == "builtin"
                         ? make_stories()
                         : read_ordered_text(request.source, lower_case, request.only);
  if (request.train_rows == 0) return text;
  const std::int64_t beyond = keep_first_sentences(text.train, request.train_rows);
  if (beyond > 0) {
    text.skipped.push_back({beyond, fmt::format("beyond the first {}", request.train_rows)});
  }
  return text;
}

text::Dictionary thought_dictionary(const OrderedText& text, std::int64_t symbols) {
  text::WordCounts counts;
  for (const Passage& passage : text.train) {
    for (const std::string& sentence : passage.sentences) {
      for (const std::string_view word : text::words_of(sentence)) ++counts[std::string(word)];
    }
  }
  return {counts, {.max_symbols = symbols - text::Dictionary::kSpecials, .multiple = 1}};
}

std::shared_ptr<const TripleRows> triple_rows(const std::vector<Passage>& passages,
                                              const text::Dictionary& dictionary,
                                              std::int64_t most_words, data::SplitNotes notes) {
  NumberedText numbered = number_text(passages, dictionary, most_words);
  check(!numbered.rows.empty(), ErrorKind::kBadInput,
        "[skip_thoughts] {}: expected three sentences in a row of at most {} words, got none",
        notes.source, most_words);
  if (numbered.dropped > 0) {
    notes.skipped.push_back(
        {numbered.dropped,
         fmt::format("more than {} words in the sentence or a neighbour", most_words)});
  }
  return std::make_shared<const TripleRows>(std::move(notes), std::move(numbered));
}

}  // namespace keel::models
