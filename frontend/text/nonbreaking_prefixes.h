// Words that include a full stop, such as "Mr.": the full stop after them ends no sentence.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <unordered_set>

#include "frontend/text/vocabulary.h"

namespace keel::text {

class NonbreakingPrefixes {
 public:
  // Moses' lists for English ("en") and German ("de"); for every other language that of English,
  // which is Moses' own fallback.
  static NonbreakingPrefixes of_language(std::string_view language);
  // Whether Moses has a list for the language, and of_language() gives that of English instead.
  static bool lacks(std::string_view language);
  // Reads a file in Moses' form: one word in each line, without its full stop, then #NUMERIC_ONLY#
  // if it counts only before a number. Empty lines and those that begin with # are ignored. A line
  // counts with its blanks, as in Moses, whose lists have some that therefore match no word. Throws
  // as read_text, and Error{kBadInput} for a file in which no line has one word.
  static NonbreakingPrefixes load(const std::filesystem::path& path);
  static NonbreakingPrefixes parse(std::string_view content, const std::string& file);

  // Whether the word keeps its full stop always, or before a number.
  bool always(std::string_view word) const { return always_.contains(word); }
  bool before_numbers(std::string_view word) const { return before_numbers_.contains(word); }

 private:
  using Words = std::unordered_set<std::string, TextHash, std::equal_to<>>;
  void add(std::string_view words);

  Words always_, before_numbers_;
};

}  // namespace keel::text
