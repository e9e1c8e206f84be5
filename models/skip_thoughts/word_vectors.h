// Vectors of words from a file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "frontend/text/vocabulary.h"

namespace keel::models {

struct WordVectors {
  std::int64_t width = 0;
  std::unordered_map<std::string, std::vector<float>, text::TextHash, std::equal_to<>> of;
};

// Reads word2vec's text form, plain, .gz or .xz: `words width` in the first line, which may be
// missing, then in each line a word and `width` numbers separated by spaces. Keeps only words that
// are `wanted`, and the first of equal ones. Throws Error{kIo} for a file that cannot be read,
// Error{kBadInput} with file and line for a line of another width, a number that is not finite,
// bytes that are not UTF-8, another number of words than the first line says, and no word at all. A
// file NAME.bin, NAME.bin.gz or NAME.bin.xz has the binary form, see read_binary_vectors.
WordVectors read_word_vectors(const std::filesystem::path& path,
                              const std::function<bool(std::string_view)>& wanted);

}  // namespace keel::models
