// The MNIST data set of handwritten digits, and sets published in the same form.
#pragma once

#include <filesystem>

#include "frontend/data/tensor_dataset.h"

namespace keel::data {

// One part: columns "image" u8 (n, 28, 28) and "label" i32 (n), 0..9, from the four files
// {train,t10k}-{images-idx3,labels-idx1}-ubyte, each plain or with .gz, in `folder` or else in
// `folder`/mnist. The files of that part are enough. `folder` may also be a file of images,
// NAME-images-idx3-ubyte, with its labels beside it, whatever the part. Throws as the IDX readers,
// Error{kIo} naming the files it looked for, and Error{kBadInput} for images of another size or
// unequal numbers of labels and images.
TensorDataset load_mnist(const std::filesystem::path& folder, Part part);

}  // namespace keel::data
