// Vectors of words from a binary file.
#pragma once

#include "models/skip_thoughts/word_vectors.h"

namespace keel::models {

// word2vec's binary form, plain or packed: `words width` and a line feed; then of each word its
// bytes, a space and `width` float32, little-endian, with a line feed after them or without. Only
// words that are `wanted` are kept, and the first of equal ones. Throws Error{kIo} for a file that
// cannot be read, Error{kBadInput} with file and word for a heading that is none, a file that ends
// early or goes on, an empty word or one of more than 65,536 bytes, and a number that is not
// finite.
WordVectors read_binary_vectors(const std::filesystem::path& path,
                                const std::function<bool(std::string_view)>& wanted);

}  // namespace keel::models
