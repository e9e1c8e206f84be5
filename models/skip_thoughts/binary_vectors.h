// Vectors of words from a binary file.
#pragma once

#include "models/skip_thoughts/word_vectors.h"

namespace keel::models {

// Reads word2vec's binary form, plain or packed: `words width` and a line feed; then for each word
// its bytes, a space and `width` float32, little-endian, with or without a line feed after them.
// Keeps only words that are `wanted`, and the first of equal ones. Throws Error{kIo} for a file
// that cannot be read, Error{kBadInput} with file and word for a wrong heading, a file that ends
// early or goes on, an empty word or one of more than 65,536 bytes, and a number that is not
// finite.
WordVectors read_binary_vectors(const std::filesystem::path& path,
                                const std::function<bool(std::string_view)>& wanted);

}  // namespace keel::models
