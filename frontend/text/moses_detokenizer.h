// Joins tokens of Moses' tokenizer to text as people write it.
#pragma once

#include <string>
#include <string_view>

namespace keel::text {

struct DetokenizeOptions {
  std::string language = "en";
  bool unescape = true;  // &amp; and so on become characters
};

// Joins " @-@ " to a hyphen and undoes escapes; then of the tokens, from left to right:
//   ( [ { and signs of money             are joined to the token after them
//   , . ? ! : ; % ) ] } and runs of them are joined to the token before them
//   English: 'll, 's and the like        are joined to the token before them
//   French, Italian, Irish: l' before a letter   is joined to the token after it
//   quotes ' " ` and runs of them        by turns join the token after and the one before; the
//     German and curly ones count as "; English: ' after a word in s joins that word
// All others have a space before them. For languages written with spaces between words. Czech and
// Finnish have rules of their own in Moses; these are not implemented, nor is the space that French
// has before its signs.
// Throws Error{kBadInput} unless the line is UTF-8.
std::string moses_detokenized(std::string_view tokens, const DetokenizeOptions& options = {});

}  // namespace keel::text
