// Learns the merges of byte-pair encoding from words and their counts.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "frontend/text/bpe_codes.h"
#include "frontend/text/vocabulary.h"

namespace keel::text {

struct BpeLearnOptions {
  std::int64_t merges = 10000;  // the largest number of merges
  std::int64_t min_count = 2;   // a pair that occurs less often is not merged
};

// The largest word, in bytes, that merges are learned from. A text without blanks is one word, and
// every merge runs through each word that contains it as a whole.
inline constexpr std::size_t kMaxLearnedWord = std::size_t{1} << 14;

// Throws Error{kBadInput} for a longer word in the line that `place` names.
void expect_learnable(std::string_view line, const std::string& place);

// Adds a line's words (words_of).
void count_words(std::string_view line, WordCounts& counts);

// A word is its characters, the last one with kEndOfWord. The pair of neighbouring symbols that
// occurs most often, where each word counts as often as it occurs, becomes one symbol, and so on.
// Among equally frequent pairs the one with the larger symbols wins; the first symbols are compared
// before the second, as bytes with the end marker spelled out. Learning ends when there are
// `merges`, or when no pair occurs min_count times. A word like "aaa" has the pair "a a" twice and
// becomes "aa a". The result depends only on the counts. Counts of pairs are updated with every
// merge, and a merge visits only words that hold its pair. `progress` is called with the number of
// merges now and then. Throws Error{kUsage} for options below 1.
BpeCodes learn_bpe(const WordCounts& counts, const BpeLearnOptions& options,
                   const std::function<void(std::int64_t)>& progress = {});

}  // namespace keel::text
