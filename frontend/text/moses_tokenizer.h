// Tokenizes like Moses' tokenizer.perl, whose rules the data sets of translation follow.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "frontend/text/nonbreaking_prefixes.h"

namespace keel::text {

struct MosesOptions {
  std::string language = "en";
  bool aggressive_hyphens = false;  // "a-b" becomes "a @-@ b"
  bool escape = true;               // & | < > ' " [ ] become &amp; and so on
  // false: the full stop of a line's last word is split off even after a prefix, as in newer
  // versions of Moses and in the published files of IWSLT14. true: it stays there, as in older
  // versions (1.1) and in sacremoses.
  bool keep_last_period = false;
  std::optional<NonbreakingPrefixes> prefixes = std::nullopt;  // nothing: the language's own
};

// The rules, in this order:
//   1  white space of any kind becomes one space; control characters are removed
//   2  spaces around every character but letters, digits, space and . ' ` , -, in Catalan also the
//      middle dot; in Finnish and Swedish a colon, in Tetun an apostrophe, stays before a small
//      letter
//   3  aggressive_hyphens: " @-@ " for a hyphen between letters or digits
//   4  two or more dots stay together, separated from their neighbours
//   5  spaces around a comma, unless there are digits on both sides
//   6  an apostrophe: between letters English splits before it (don 't), French, Italian, Irish and
//      Catalan after it (l' eau), Somali and Tetun nowhere, other languages on both sides;
//      elsewhere it is split off on both sides; English splits before it in 1990 's
//   7  a full stop at a word's end is split off, unless the word has another one and a letter
//      (e.g.), is a prefix that keeps it, or the next word begins in lower case
//   8  escapes
// A token of many dots does not count as a word's end.
class MosesTokenizer {
 public:
  explicit MosesTokenizer(MosesOptions options = {});
  // The tokens, separated by one space. Throws Error{kBadInput} unless the line is UTF-8.
  std::string operator()(std::string_view line) const;

 private:
  void split_apostrophes(std::u32string& text) const;
  std::string cut_periods(const std::u32string& text) const;
  bool keeps_period(std::u32string_view word, std::u32string_view next) const;

  MosesOptions options_;
  NonbreakingPrefixes prefixes_;
};

// Escapes the characters that have a meaning in Moses' own files, and undoes that, also for the
// names of older versions, &bar; &bra; and &ket;.
std::string moses_escaped(std::string_view text);
std::string moses_unescaped(std::string_view text);

}  // namespace keel::text
