// Prose cut into sentences.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace keel::text {

// The sentences of prose in UTF-8, in their order, each in one line. Prose with a line of more than
// kLongestPrinted bytes has a paragraph a line; otherwise a paragraph ends at an empty line and
// before an indented one. Within a paragraph a sentence ends after . ! ? or several of them,
// closing quotes and brackets included, where a space and then a capital letter, a digit, an
// opening quote or bracket follows; not after a word whose full stop belongs to it
// (NonbreakingPrefixes of English) nor after a single capital letter, an initial. A byte-order
// mark in front is passed over.
inline constexpr std::size_t kLongestPrinted = 200;
std::vector<std::string> sentences_of(std::string_view prose);

}  // namespace keel::text
