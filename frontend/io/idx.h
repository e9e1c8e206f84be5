// IDX, the file format of MNIST: big-endian u32 numbers (a magic, then one size per axis), then
// the elements, here always u8. http://yann.lecun.com/exdb/mnist (LeCun, Cortes, Burges)
#pragma once

#include <cstdint>
#include <filesystem>

#include "src/core/tensor.h"

namespace keel::io {

inline constexpr std::int64_t kMaxImageBytes = std::int64_t{256} << 20;
inline constexpr std::int64_t kMaxLabelBytes = std::int64_t{8} << 20;

// Readers take a plain or gzip file. They throw as PackedFile, and Error{kBadInput} for another
// magic, a size of 0, or a payload that is not exactly the product of the sizes.

// u8 (n, height, width) from a file of magic 0x00000803 and at most kMaxImageBytes.
Tensor read_idx_images(const std::filesystem::path& path);

// i32 (n) from a file of magic 0x00000801 and at most kMaxLabelBytes. Throws Error{kBadInput}
// naming the first label that is not below `classes`.
Tensor read_idx_labels(const std::filesystem::path& path, std::int32_t classes = 10);

// Write plain files for the readers. They throw Error{kIo} when writing fails, and Error{kUsage}
// for tensors that are not u8 (n, height, width) and i32 (n) of 0..255, without an empty axis.
void write_idx_images(const std::filesystem::path& path, const Tensor& images);
void write_idx_labels(const std::filesystem::path& path, const Tensor& labels);

}  // namespace keel::io
