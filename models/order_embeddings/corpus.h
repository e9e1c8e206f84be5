// Images that have been described: a vector of numbers and five sentences each, wherever they come
// from, before words have numbers.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "frontend/task/batch.h"

namespace keel::models {

inline constexpr std::int64_t kCaptionsAnImage = 5;

struct DescribedImages {
  Tensor features;                    // f32 (images, width), a row of length 1 each
  std::vector<std::string> captions;  // words with blanks between, five in a row an image
  std::int64_t images() const { return std::ssize(captions) / kCaptionsAnImage; }
};

struct CaptionCorpus {
  std::string name;    // "shapes"
  std::string origin;  // where it lies, or how it was made
  DescribedImages train, valid;
  // Reads the test split; its files are opened here and not before.
  std::function<DescribedImages()> test;
  std::vector<task::LeftOut> left_out = {};  // of the training images
};

// Divides every row by its length; a row of zeros stays.
void scale_to_unit_length(Tensor& rows);

// Keeps the first images; 0: all.
void keep_first_images(DescribedImages& images, std::int64_t count);

}  // namespace keel::models
