#include "src/core/shape.h"

#include <algorithm>

#include "src/core/error.h"

namespace keel {

std::int64_t checked_multiply(std::int64_t a, std::int64_t b) {
  std::int64_t product = 0;
  check(!__builtin_mul_overflow(a, b, &product), ErrorKind::kMemory,
        "size overflow: {} * {} does not fit 63 bits", a, b);
  return product;
}

Shape::Shape(std::initializer_list<std::int64_t> sizes)
    : Shape(std::span<const std::int64_t>(sizes.begin(), sizes.size())) {}

Shape::Shape(std::span<const std::int64_t> sizes) : rank_(static_cast<int>(sizes.size())) {
  check(sizes.size() <= kMaxRank, ErrorKind::kUsage, "shape: expected rank <= {}, got {}", kMaxRank,
        sizes.size());
  for (std::int64_t size : sizes) {
    check(size >= 0, ErrorKind::kUsage, "shape: expected sizes >= 0, got {}", size);
  }
  std::copy(sizes.begin(), sizes.end(), sizes_.begin());
}

std::int64_t Shape::elements() const { return elements(0, rank_); }

std::int64_t Shape::elements(int first, int last) const {
  std::int64_t product = 1;
  for (int axis = first; axis < last; ++axis) product = checked_multiply(product, sizes_[axis]);
  return product;
}

std::array<std::int64_t, Shape::kMaxRank> Shape::strides() const {
  std::array<std::int64_t, kMaxRank> result{};
  std::int64_t stride = 1;
  for (int axis = rank_ - 1; axis >= 0; --axis) {
    result[axis] = stride;
    stride = checked_multiply(stride, sizes_[axis]);
  }
  return result;
}

int Shape::resolve_axis(int axis) const {
  const int resolved = axis < 0 ? axis + rank_ : axis;
  check(resolved >= 0 && resolved < rank_, ErrorKind::kUsage,
        "axis: expected one of {} axes, got {}", rank_, axis);
  return resolved;
}

Shape Shape::with(int axis, std::int64_t size) const {
  Shape result = *this;
  result.sizes_[resolve_axis(axis)] = size;
  return result;
}

std::string Shape::text() const { return fmt::format("({})", fmt::join(sizes(), ", ")); }

Shape broadcast(const Shape& a, const Shape& b) {
  const Shape& longer = a.rank() >= b.rank() ? a : b;
  const Shape& shorter = a.rank() >= b.rank() ? b : a;
  Shape result = longer;
  for (int axis = -1; axis >= -shorter.rank(); --axis) {
    const std::int64_t m = longer[axis], n = shorter[axis];
    check(m == n || m == 1 || n == 1, ErrorKind::kUsage, "cannot broadcast {} with {}", a.text(),
          b.text());
    result = result.with(axis, m == 1 ? n : m);
  }
  return result;
}

}  // namespace keel
