// Digits whose pixels are black or white.
#pragma once

#include <array>
#include <memory>

#include "frontend/data/table_rows.h"
#include "frontend/task/task.h"

namespace keel::models {

// How pixels become 0 or 1. Bounds measured in one way cannot be compared with another's.
enum class Binarize {
  kFixed,      // the files of Larochelle and Murray (2011), who drew the pixels once
  kThreshold,  // 1 from 128 of 255 on
  kSampled,    // 1 with the probability pixel / 255, drawn once
};
constexpr auto choice_words(Binarize) {
  return std::to_array<std::string_view>({"fixed", "threshold", "sampled"});
}

// The columns of a batch: "image" f32 (28, 28) of 0 and 1, and "number" i32, of the row.
std::vector<data::TableColumn> draw_columns();

// kFixed reads binarized_mnist_train.amat, ..._valid.amat and ..._test.amat, plain, .gz or .xz, in
// the folder or in its folder binarized_mnist or mnist: an image a line, 784 digits 0 or 1 between
// blanks. The others take the IDX files of MNIST, or the built-in digits, as load_digits. Each test
// image occurs `test_samples` times, each time with another number, which draws its latents. Throws
// Error{kUsage} for kFixed with built-in digits; making a table throws Error{kIo} for a missing
// file, and Error{kBadInput} that names file, line, what was expected and what was found.
std::unique_ptr<task::Splits> load_binary_digits(const task::DataRequest& request,
                                                 Binarize binarize, std::int64_t test_samples = 1);

}  // namespace keel::models
