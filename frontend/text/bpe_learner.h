// Learning the merges of byte-pair encoding from words and how often they occur.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "frontend/text/bpe_codes.h"
#include "frontend/text/vocabulary.h"

namespace keel::text {

struct BpeLearnOptions {
  std::int64_t merges = 10000;  // the most
  std::int64_t min_count = 2;   // a pair that occurs less often is not merged
};

// The most bytes of a word that merges are learned from: a text without blanks is one word, and
// every merge goes through the whole words that it is in.
inline constexpr std::size_t kMaxLearnedWord = std::size_t{1} << 14;

// Throws Error{kBadInput} for a longer word in the line that `place` names.
void expect_learnable(std::string_view line, const std::string& place);

// Adds a line's words (words_of).
void count_words(std::string_view line, WordCounts& counts);

// A word is its characters, the last one with kEndOfWord. Again and again the pair of symbols that
// stands side by side most often, each word counted as often as it occurs, becomes one symbol; of
// pairs that are equally frequent the one whose symbols are larger, the first before the second,
// compared as bytes with the end marker spelled out. It ends when there are `merges`, or when no
// pair occurs min_count times. A word like "aaa" has the pair "a a" twice and becomes "aa a".
// The result depends on the counts alone. Counts of pairs are kept up to date from merge to merge,
// and only words that hold the merged pair are gone through. `progress` is called with the number
// of merges now and then. Throws Error{kUsage} for options below 1.
BpeCodes learn_bpe(const WordCounts& counts, const BpeLearnOptions& options,
                   const std::function<void(std::int64_t)>& progress = {});

}  // namespace keel::text
