// "tex10": synthetic textures of ten classes, so that everything can be tried without a download.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "frontend/data/picture_rows.h"

namespace keel::data {

// "texture0" to "texture9".
std::vector<std::string> texture_classes();

// Rows `first` to first + n - 1 of a part. Row i is a pure function of (seed, part, i); every ten
// rows from a multiple of ten hold each class once. A texture is the sum of three waves
//     colour * sin(2 pi (frequency (x cos(turn) + y sin(turn)) + phase))
// whose colours, frequencies and directions belong to the class and whose phases are random, plus
// noise of deviation 0.3 in every pixel and colour; -1.5 is black, 1.5 full.
// Throws Error{kUsage} unless 0 < n < 2^32.
Pictures make_textures(std::int64_t n, std::uint64_t seed, std::string_view part,
                       std::int64_t first = 0);

}  // namespace keel::data
