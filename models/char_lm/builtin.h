// "markov2+title": a synthetic text in which each document has a title that comes again and again.
#pragma once

#include <string>

#include "frontend/task/batch.h"

namespace keel::models {

// Documents of 1,024 symbols of an alphabet of 33, which are the bytes a to z, 0 to 5, and # for
// symbol 32; 1,758 documents for training and 98 each for validation and testing. At places p of a
// document with p mod 64 = 0 stands symbol 32, after it the 8 symbols of the title, drawn once a
// document from 0 to 31. Elsewhere the next symbol after a and b is a candidate
//     (31 a + 17 b + 7 c + 5 ((a b) mod 13)) mod 32,  c = 0, 1, 2, 3 with .55, .25, .15, .05
// The best possible is 55/64 * 1.601 + 8 * 5 / 1024 = 1.42 bits a symbol, a little less where
// candidates coincide. A model that does not remember the title pays 8 * 5 bits for each of its 16
// occurrences in a document.
std::string make_titled_text(task::Split split, std::uint64_t seed);

}  // namespace keel::models
