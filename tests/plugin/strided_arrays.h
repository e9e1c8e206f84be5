// Arrays with strides for tests, with what lies around and between their elements, and drawn
// layouts of them.
#pragma once

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>
#include <vector>

#include "src/core/tensor.h"

namespace keel::test {

using Strides = std::vector<std::int64_t>;

// The offsets of all elements, in their order.
inline std::vector<std::int64_t> offsets_of(const Shape& shape, const Strides& strides) {
  std::vector<std::int64_t> offsets{0};
  for (int axis = 0; axis < shape.rank(); ++axis) {
    std::vector<std::int64_t> further;
    for (const std::int64_t offset : offsets) {
      for (std::int64_t i = 0; i < shape[axis]; ++i) {
        further.push_back(offset + i * strides[std::size_t(axis)]);
      }
    }
    offsets = std::move(further);
  }
  return offsets;
}

inline Strides contiguous(const Shape& shape) {
  const auto strides = shape.strides();
  return {strides.begin(), strides.begin() + shape.rank()};
}

// An array with strides between guards. Bytes that are no element have a pattern, which as an
// element is a NaN.
class Guarded {
 public:
  Guarded(const TensorType& type, Strides strides)
      : type_(type), strides_(std::move(strides)), offsets_(offsets_of(type.shape, strides_)) {
    const auto [low, high] =
        offsets_.empty() ? std::ranges::minmax({std::int64_t{0}}) : std::ranges::minmax(offsets_);
    const std::int64_t size = size_of(type.dtype);
    first_ = kGuard - low * size;
    bytes_.assign(std::size_t((high - low + 1) * size + 2 * kGuard), std::byte{0xff});
  }
  Guarded(const Tensor& value, Strides strides) : Guarded(value.type(), std::move(strides)) {
    write(value);
  }

  void* address() { return bytes_.data() + first_; }
  const Strides& strides() const { return strides_; }
  const std::vector<std::byte>& bytes() const { return bytes_; }
  // Of elements that share a place the last is written.
  void write(const Tensor& value) {
    for_elements([&](std::int64_t i, std::int64_t place, std::size_t size) {
      std::memcpy(bytes_.data() + place, value.data() + i, size);
    });
  }
  Tensor read() const {
    Tensor value(type_);
    for_elements([&](std::int64_t i, std::int64_t place, std::size_t size) {
      std::memcpy(value.data() + i, bytes_.data() + place, size);
    });
    return value;
  }

 private:
  static constexpr std::int64_t kGuard = 4 * 64;
  template <class Body>
  void for_elements(const Body& body) const {
    const std::int64_t size = size_of(type_.dtype);
    for (std::size_t i = 0; i < offsets_.size(); ++i) {
      body(std::int64_t(i) * size, first_ + offsets_[i] * size, std::size_t(size));
    }
  }

  TensorType type_;
  Strides strides_;
  std::vector<std::int64_t> offsets_;
  std::int64_t first_;  // the byte of the element whose indices are 0
  std::vector<std::byte> bytes_;
};

// Layouts whose last axes lie together.
class DrawnLayouts {
 public:
  explicit DrawnLayouts(std::uint32_t seed) : random_(seed) {}

  std::int64_t below(std::int64_t n) { return std::int64_t(random_() % std::uint64_t(n)); }
  Shape shape(int axes) {
    constexpr std::int64_t kRows[] = {1, 2, 3, 4, 5}, kWidths[] = {2, 4, 6, 16, 34, 64, 70};
    std::vector<std::int64_t> sizes(std::size_t(1 + below(3)));
    for (std::int64_t& size : sizes) size = kRows[below(5)];
    if (axes == 2) sizes.push_back(1 + below(3));
    sizes.push_back(kWidths[below(7)]);
    return Shape(std::span<const std::int64_t>(sizes));
  }
  Tensor numbers(const Shape& shape) {
    Tensor tensor(DType::kF32, shape);
    for (float& number : tensor.as<float>()) number = float(below(1 << 20)) / (1 << 18) - 2;
    return tensor;
  }
  // The outer axes in any order of memory, with gaps, backwards and, if it may repeat, with 0.
  Strides strides(const Shape& shape, int axes, bool may_repeat) {
    Strides strides = contiguous(shape);
    const int outer = shape.rank() - axes;
    std::vector<int> order(std::size_t(outer), 0);
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random_);
    std::int64_t next = shape.elements(outer, shape.rank());
    for (const int axis : order) {
      const std::int64_t stride = next + (below(2) == 0 ? 0 : below(20));
      const bool repeats = may_repeat && below(8) == 0;
      strides[std::size_t(axis)] = repeats ? 0 : below(4) == 0 ? -stride : stride;
      if (!repeats) next = stride * std::max<std::int64_t>(shape[axis], 1);
    }
    return strides;
  }

 private:
  std::mt19937 random_;
};

}  // namespace keel::test
