// Tokens as Moses' tokenizer.perl makes them, whose rules the data sets of translation follow.
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
  // The full stop of a line's last word is cut off even after a prefix, as newer
  // versions of Moses do it and the published files of IWSLT14 have it; in older ones (1.1), and in
  // sacremoses, it stays there.
  bool keep_last_period = false;
  std::optional<NonbreakingPrefixes> prefixes = std::nullopt;  // nothing: those of the language
};

// The rules, in this order:
//   1  white space of any kind becomes one space; control characters go
//   2  spaces round every character but letters, digits, space and . ' ` , -
//   3  aggressive_hyphens: " @-@ " for a hyphen between letters or digits
//   4  two dots or more stay together, apart from what stands beside them
//   5  spaces round a comma, unless digits stand on both sides
//   6  an apostrophe: between letters English cuts before it (don 't), French and Italian after it
//      (l' eau), other languages on both sides; between others than letters on both sides;
//      English cuts before it in 1990 's
//   7  a full stop at a word's end is cut off, unless the word has another one and a letter (e.g.),
//      is a prefix that keeps it, or the next word begins in lower case
//   8  what is escaped
// A token of many dots does not count as a word's end. Of fi, sv and ca Moses has rules of their
// own for colons and the like, which are not here.
class MosesTokenizer {
 public:
  explicit MosesTokenizer(MosesOptions options = {});
  // The tokens with one space between them. Throws Error{kBadInput} unless the line is UTF-8.
  std::string operator()(std::string_view line) const;

 private:
  void split_apostrophes(std::u32string& text) const;
  std::string cut_periods(const std::u32string& text) const;
  bool keeps_period(std::u32string_view word, std::u32string_view next) const;

  MosesOptions options_;
  NonbreakingPrefixes prefixes_;
};

// The characters that have a meaning in Moses' own files, and back; back also from the names of
// older versions, &bar; &bra; and &ket;.
std::string moses_escaped(std::string_view text);
std::string moses_unescaped(std::string_view text);

}  // namespace keel::text
