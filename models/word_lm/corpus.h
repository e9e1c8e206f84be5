// Running text in words, from any source, and the numbers of its words.
#pragma once

#include <array>
#include <functional>
#include <string>
#include <vector>

#include "frontend/data/lane_rows.h"
#include "frontend/task/batch.h"
#include "frontend/text/lines.h"
#include "frontend/text/vocabulary.h"

namespace keel::models {

// The lines of a text, which is read from its start whenever it is asked for.
using TakeLine = std::function<void(const text::Line&)>;
struct LineSource {
  std::string name;  // of the file, or what made the lines
  std::function<void(const TakeLine&)> read;
};

struct WordCorpus {
  std::string name;                 // "ptb"
  std::array<LineSource, 3> parts;  // by task::Split
};

// The words of a line are what lies between blanks, and one more word ends it, so an empty line is
// one word.
inline constexpr std::string_view kEndOfLine = "<eos>";

// The words of the first `lines` lines (0: all) with their counts, those of ends included.
text::WordCounts count_words(const LineSource& source, std::int64_t lines);

// The number of a word in the network: 0 for every unknown one, then the words of the vocabulary,
// the most frequent first.
inline std::int32_t number_of(const text::Vocabulary& vocabulary, std::string_view word) {
  return vocabulary.id(word) - text::Vocabulary::kUnk;
}
inline std::int32_t count_of_numbers(const text::Vocabulary& vocabulary) {
  return vocabulary.size() - text::Vocabulary::kUnk;
}
// Whether the text from which the vocabulary was made has unknown words: those of other texts are
// then like these.
inline bool knows_unknown(const text::Vocabulary& vocabulary) {
  return vocabulary.count(text::Vocabulary::kUnk) > 0;
}

// The text as numbers. Throws Error{kBadInput}, with the place, for a word that is not in the
// vocabulary if that has no unknown words.
std::vector<std::int32_t> number_words(const LineSource& source, std::int64_t lines,
                                       const text::Vocabulary& vocabulary);

}  // namespace keel::models
