// Described images of any source: a vector of numbers and five sentences each, before words have
// numbers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "frontend/data/corpus.h"

namespace keel::models {

inline constexpr std::int64_t kCaptionsAnImage = 5;

struct DescribedImages {
  Tensor features;                    // f32 (images, width), a row of length 1 each
  std::vector<std::string> captions;  // words separated by blanks, five in a row for an image
  std::int64_t images() const { return std::ssize(captions) / kCaptionsAnImage; }
};

using CaptionCorpus = data::Corpus<DescribedImages>;

// Divides every row by its length; a row of zeros stays.
void scale_to_unit_length(Tensor& rows);

// Keeps the first images; 0: all.
void keep_first_images(DescribedImages& images, std::int64_t count);

}  // namespace keel::models
