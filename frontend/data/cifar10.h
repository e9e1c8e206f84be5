// CIFAR-10's binary files (Krizhevsky 2009, https://www.cs.toronto.edu/~kriz/cifar.html): records
// of a label byte, 0 to 9, and 3,072 bytes, the planes red, green and blue of 32 x 32 pixels.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "frontend/data/picture_rows.h"
#include "frontend/data/tensor_dataset.h"

namespace keel::data {

// The names of the ten classes, as published: "airplane", ..., "truck".
std::vector<std::string> cifar10_classes();

// The folder of CIFAR-10's files: `folder` or else its folder cifar-10-batches-bin or cifar10,
// whichever has a file of the part; "" if none has. Throws Error{kBadInput} where there is
// CIFAR-10's Python version instead, which is not read.
std::filesystem::path find_cifar10(const std::filesystem::path& folder, Part part = Part::kTrain);

// All records of the files data_batch*.bin, or test_batch*.bin, of that folder, each plain or with
// .gz or .xz, in the order of their names; or those of `folder`, if it is a file. Throws as
// PackedFile, Error{kIo} when there is no file, and Error{kBadInput} for a file that is not whole
// records, or for a label of 10 or more.
Pictures load_cifar10(const std::filesystem::path& folder, Part part);

}  // namespace keel::data
