// "polar": synthetic sentences whose label depends on several words and their order, so that the
// text classifier can be tried without a download.
#pragma once

#include <cstdint>

#include "models/text_classifier/corpus.h"

namespace keel::models {

// 4,000, 500 and 500 sentences for training, validation and testing, always the same ones.
//   words    600, word r drawn with probability proportional to 1 / r (Zipf); 30 are good (+1),
//            30 bad (-1) and 10 are negators. A negator turns the sign of the next good or bad
//            word, so that two before one word cancel
//   length   5 to 25 words, all equally likely
//   label    of 2 classes: whether the sum of the signs is above 0; sentences with the sum 0 are
//            drawn again. Of 5 classes: the sum, cut to -2 to 2, plus 2
// In all three splits 3 % of the labels are wrong, so that 97 % is the best possible accuracy. A
// word names its kind and its rank: good25, bad26, not8, word9.
// Throws Error{kUsage} for another number of classes than 2 or 5.
Corpus make_polar(std::int32_t classes);

}  // namespace keel::models
