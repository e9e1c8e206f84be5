// Cuts prose into sentences.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace keel::text {

// The sentences of prose in UTF-8, in their order, each in one line. If a line of the prose has
// more than kLongestPrinted bytes, each line is a paragraph; otherwise a paragraph ends at an empty
// line and before an indented one. Within a paragraph a sentence ends after . ! ? or several of
// them, including closing quotes and brackets, if a space and then a capital letter, a digit, an
// opening quote or bracket follows; but not after a word that includes its full stop
// (NonbreakingPrefixes of English) nor after a single capital letter, an initial. A byte-order mark
// in front is skipped.
inline constexpr std::size_t kLongestPrinted = 200;
std::vector<std::string> sentences_of(std::string_view prose);

}  // namespace keel::text
