// Cuts words into sub-words by byte-pair encoding, and puts them together again.
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

  // The sub-words of a line's words (words_of), with one space between them, and with kContinues at
  // the end of each that is not the last of its word. A word begins as its characters. As long as
  // two neighbours are a merge, the earliest merge among them is applied at all of its places, from
  // left to right. Takes time in proportion to n log n for a word of n characters. Throws
  // Error{kBadInput} for a word that ends in kContinues, since that could not be undone. `where`
  // names the line in errors.
  std::string apply(std::string_view line, std::string_view where);

 private:
  struct Join {
    std::int32_t rank, symbol;  // of the result
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

// Restores the words from sub-words: removes every "@@ ", and "@@" at the line's end.
std::string bpe_undone(std::string_view line);

}  // namespace keel::text
