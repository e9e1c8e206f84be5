// Text as people write it, from tokens as Moses' tokenizer makes them.
#pragma once

#include <string>
#include <string_view>

namespace keel::text {

struct DetokenizeOptions {
  std::string language = "en";
  bool unescape = true;  // &amp; and so on become characters
};

// Joins " @-@ " to a hyphen and takes back escapes; then of the tokens, from left to right:
//   ( [ { and signs of money             stand close to what follows
//   , . ? ! : ; % ) ] } and runs of them stand close to what is before them
//   English: 'll, 's and the like        close to what is before them
//   French, Italian, Irish: l' before a letter   close to what follows
//   quotes ' " ` and runs of them        by turns close to what follows and to what is before; the
//     German and curly ones count as "; English: ' after a word in s is close to that
// All others have a space before them. For languages written with spaces between words; Czech and
// Finnish have rules of their own in Moses, which are not here, nor is the space that French has
// before its signs.
// Throws Error{kBadInput} unless the line is UTF-8.
std::string moses_detokenized(std::string_view tokens, const DetokenizeOptions& options = {});

}  // namespace keel::text
