// Stand-ins for the features of images of which only captions are given. They are not computed from
// images: results measured with them say nothing about pixels.
#pragma once

#include <string>
#include <vector>

#include "src/core/tensor.h"

namespace keel::models {

inline constexpr std::int64_t kSyntheticWidth = 1024;

// f32 (images, kSyntheticWidth), rows of length 1, of five captions in a row an image:
//     relu(sum over w of log(2 N / n_w) r_w + 0.5 |sum| / sqrt(width) n)
// over the words w that at least two captions of the image have. So the features do not hold the
// words that only one caption has: as seen from a caption, they are what the others say of the
// image. r_w is standard normal, drawn by the spelling of the word, so that splits agree; n is too,
// drawn by the number of the image; n_w of N images have the word.
Tensor synthetic_features(const std::vector<std::string>& captions);

}  // namespace keel::models
