// Text that stands in plots.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace keel::io {

// The words of a text in lines of at most `columns` bytes, at least 1; a longer word is cut between
// characters. No line for a text without words.
std::vector<std::string> wrapped(std::string_view text, std::size_t columns);

// Returns the words that people use for a measured quantity: "learning rate" for lr, "gradient
// norm" for grad_norm, "BLEU" for bleu, "mean rank" for mean_rank.
std::string words_of_quantity(const std::string& name);

}  // namespace keel::io
