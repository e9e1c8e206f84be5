// Built-in handwritten-looking digits, so that everything can be tried without a download.
#pragma once

#include <cstdint>
#include <string_view>

#include "frontend/data/tensor_dataset.h"

namespace keel::data {

// Columns "image" u8 (n, 28, 28), white ink on black, and "label" i32 (n), 0..9. Row i is a pure
// function of (seed, part, i); every ten rows from a multiple of ten hold each label once.
// A glyph is drawn by a random hand: style, jitter, slant, rotation, size, place, pen, noise.
// Throws Error{kUsage} unless 0 < n < 2^32.
TensorDataset make_digits(std::int64_t n, std::uint64_t seed, std::string_view part);

// The parts "train" and "test" of one seed; they share no random number.
TrainTest builtin_digits(std::int64_t train_n, std::int64_t test_n, std::uint64_t seed);

}  // namespace keel::data
