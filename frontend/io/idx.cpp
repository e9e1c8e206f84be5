// Header checks, and the two kinds of IDX file that MNIST has.
#include "frontend/io/idx.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <vector>

#include "frontend/io/packed_file.h"

namespace keel::io {
namespace {

constexpr std::uint32_t kMagicOfRank0 = 0x00000800;  // elements are u8; the last byte is the rank

std::uint32_t read_u32(PackedFile& file) {
  std::array<std::byte, 4> bytes;
  file.read(bytes);
  std::uint32_t value = 0;
  for (std::byte b : bytes) value = value << 8 | static_cast<std::uint32_t>(b);
  return value;
}

// Reads the header and returns the sizes, whose product is what the file still holds.
Shape read_header(PackedFile& file, int rank) {
  const std::int64_t header_bytes = 4 + 4 * rank;
  check(file.size() >= header_bytes, ErrorKind::kBadInput,
        "[idx] {}: expected a header of {} bytes, got a file of {}", file.name(), header_bytes,
        file.size());
  const std::uint32_t expected = kMagicOfRank0 + static_cast<std::uint32_t>(rank);
  const std::uint32_t magic = read_u32(file);
  check(magic == expected, ErrorKind::kBadInput, "[idx] {}: expected magic {:#010x}, got {:#010x}",
        file.name(), expected, magic);
  std::vector<std::int64_t> sizes;
  std::int64_t product = 1;
  bool overflow = false;
  for (int axis = 0; axis < rank; ++axis) {
    sizes.push_back(read_u32(file));
    overflow |= __builtin_mul_overflow(product, sizes.back(), &product);
  }
  const Shape shape{std::span<const std::int64_t>(sizes)};
  check(std::ranges::count(sizes, 0) == 0, ErrorKind::kBadInput,
        "[idx] {}: expected sizes of 1 or more, got {}", file.name(), shape.text());
  check(!overflow && product == file.size() - header_bytes, ErrorKind::kBadInput,
        "[idx] {}: expected {} bytes for {} after the header, got {}", file.name(),
        overflow ? "over 2^63" : fmt::format("{}", product), shape.text(),
        file.size() - header_bytes);
  return shape;
}

void write_idx(const std::filesystem::path& path, const Shape& shape,
               std::span<const std::uint8_t> elements) {
  std::vector<char> header;
  const auto append_u32 = [&](std::int64_t value) {
    for (int shift = 24; shift >= 0; shift -= 8)
      header.push_back(static_cast<char>(value >> shift));
  };
  append_u32(kMagicOfRank0 + shape.rank());
  for (std::int64_t size : shape.sizes()) {
    check(size > 0 && size <= 0xFFFFFFFF, ErrorKind::kUsage,
          "[idx] {}: expected sizes of 1 to 2^32 - 1, got {}", path.string(), shape.text());
    append_u32(size);
  }
  std::ofstream file(path, std::ios::binary);
  file.write(header.data(), static_cast<std::streamsize>(header.size()));
  file.write(reinterpret_cast<const char*>(elements.data()),
             static_cast<std::streamsize>(elements.size()));
  file.close();
  check(file.good(), ErrorKind::kIo, "[idx] {}: expected to write {} bytes, got: {}", path.string(),
        header.size() + elements.size(), std::strerror(errno));
}

}  // namespace

Tensor read_idx_images(const std::filesystem::path& path) {
  PackedFile file(path, kMaxImageBytes);
  Tensor images(DType::kU8, read_header(file, 3));
  file.read(std::as_writable_bytes(images.as<std::uint8_t>()));
  return images;
}

Tensor read_idx_labels(const std::filesystem::path& path, std::int32_t classes) {
  PackedFile file(path, kMaxLabelBytes);
  Tensor bytes(DType::kU8, read_header(file, 1));
  file.read(std::as_writable_bytes(bytes.as<std::uint8_t>()));
  Tensor labels = bytes.to(DType::kI32);
  for (std::int64_t row = 0; std::int32_t label : labels.as<std::int32_t>()) {
    check(label < classes, ErrorKind::kBadInput, "[idx] {}: label {}: expected 0 to {}, got {}",
          file.name(), row, classes - 1, label);
    ++row;
  }
  return labels;
}

void write_idx_images(const std::filesystem::path& path, const Tensor& images) {
  check(images.shape().rank() == 3, ErrorKind::kUsage,
        "[idx] {}: expected images (n, height, width), got {}", path.string(),
        images.shape().text());
  write_idx(path, images.shape(), images.as<std::uint8_t>());
}

void write_idx_labels(const std::filesystem::path& path, const Tensor& labels) {
  check(labels.shape().rank() == 1, ErrorKind::kUsage, "[idx] {}: expected labels (n), got {}",
        path.string(), labels.shape().text());
  for (std::int32_t label : labels.as<std::int32_t>()) {
    check(label >= 0 && label <= 255, ErrorKind::kUsage,
          "[idx] {}: expected labels 0 to 255, got {}", path.string(), label);
  }
  const Tensor bytes = labels.to(DType::kU8);
  write_idx(path, labels.shape(), bytes.as<std::uint8_t>());
}

}  // namespace keel::io
