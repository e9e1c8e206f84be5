// Shapes: up to eight 64-bit sizes, outermost first, row-major.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

namespace keel {

// a * b for sizes. Throws Error{kMemory} when the product does not fit 63 bits.
std::int64_t checked_multiply(std::int64_t a, std::int64_t b);

class Shape {
 public:
  static constexpr int kMaxRank = 8;

  Shape() = default;  // a scalar: rank 0, one element
  Shape(std::initializer_list<std::int64_t> sizes);
  explicit Shape(std::span<const std::int64_t> sizes);

  int rank() const { return rank_; }
  // Size of an axis; a negative axis counts from the end. Throws Error{kUsage} if out of range.
  std::int64_t operator[](int axis) const { return sizes_[resolve_axis(axis)]; }
  std::int64_t back() const { return (*this)[-1]; }
  std::span<const std::int64_t> sizes() const { return {sizes_.data(), std::size_t(rank_)}; }

  // Number of elements. Throws Error{kMemory} on overflow instead of wrapping round.
  std::int64_t elements() const;
  // Product of the sizes of axes [first, last).
  std::int64_t elements(int first, int last) const;
  // Elements between neighbours along each axis.
  std::array<std::int64_t, kMaxRank> strides() const;

  int resolve_axis(int axis) const;
  Shape with(int axis, std::int64_t size) const;
  // "(2, 3)"; a scalar is "()".
  std::string text() const;

  friend bool operator==(const Shape&, const Shape&) = default;

 private:
  std::array<std::int64_t, kMaxRank> sizes_{};
  int rank_ = 0;
};

// NumPy broadcasting: axes are aligned at the end and a size of 1 stretches.
// Throws Error{kUsage} naming both shapes when they do not fit.
Shape broadcast(const Shape& a, const Shape& b);

}  // namespace keel
