// Words cut into sub-words by byte-pair encoding, and put together again.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "frontend/text/bpe_codes.h"
#include "frontend/text/vocabulary.h"

namespace keel::text {

class Bpe {
 public:
  explicit Bpe(const BpeCodes& codes);

  // The sub-words of a line's words (words_of), one space between them, kContinues at the end of
  // each that another of the same word follows. A word begins as its characters; as long as
  // two that stand side by side are a merge, all places of the earliest merge among them are
  // joined, from left to right. Takes time in proportion to n log n for a word of n characters.
  // Throws Error{kBadInput} for a word that ends in kContinues, for nobody could take that back.
  // `where` names the line in errors.
  std::string apply(std::string_view line, std::string_view where);

 private:
  struct Join {
    std::int32_t rank, symbol;  // of what comes out
  };
  struct Candidate;
  struct Part;

  std::int32_t symbol(std::string_view text) const;
  std::int32_t add_symbol(const std::string& text);
  const Join* find(std::int32_t left, std::int32_t right) const;
  std::vector<Part> parts_of(std::string_view word) const;
  void join_all(std::vector<Part>& parts) const;
  std::string cut(std::string_view word) const;

  bool separate_end_;
  std::unordered_map<std::string, std::int32_t, TextHash, std::equal_to<>> symbols_;
  std::unordered_map<std::uint64_t, Join> joins_;  // by left << 32 | right
  std::unordered_map<std::string, std::string, TextHash, std::equal_to<>> cache_;
};

// Words out of sub-words: every "@@ ", and "@@" at the line's end, goes.
std::string bpe_undone(std::string_view line);

}  // namespace keel::text
