// Joins tokens of Moses' tokenizer to text as people write it.
#pragma once

#include <string>
#include <string_view>

namespace keel::text {

struct DetokenizeOptions {
  std::string language = "en";
  bool unescape = true;  // &amp; and so on become characters
};

// Moses' detokenizer.perl: joins " @-@ " to a hyphen and undoes escapes; then, token by token, the
// first rule that applies:
//   Chinese, Japanese and Korean characters   follow each other without a space, but not in Korean
//   ( [ { and signs of money             are joined to the token after them
//   , . ? ! : ; % ) ] } and runs of them are joined to the token before them; French has a space
//                                        before a single ? ! : ; or %
//   English: 'll, 's and the like        are joined to the letter or digit before them
//   Czech: 3 , 5 and e - mail            are joined
//   French, Italian: l' before a letter  is joined to the token after it
//   quotes ' " ` and runs of them        by turns join the token after and the one before; the
//     German and curly ones count as ", and in Czech say themselves whether they open; English:
//     ' after a word in s joins that word
//   Finnish: endings after a colon       are joined to it, in lower case
// All others have a space before them.
// Throws Error{kBadInput} unless the line is UTF-8.
std::string moses_detokenized(std::string_view tokens, const DetokenizeOptions& options = {});

}  // namespace keel::text
