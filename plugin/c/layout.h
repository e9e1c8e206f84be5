// Where the elements of an array lie in memory, by its strides.
#pragma once

#include <array>
#include <span>
#include <string>
#include <vector>

#include "src/runtime/backend.h"

namespace keel::plugin {

// The distance of neighbours along an axis of `size` elements.
struct Axis {
  std::int64_t size, stride;
};

// An array as runs of neighbours: axes lead from run to run, in the order of the array's elements.
// A contiguous array is one run.
class Layout {
 public:
  // `strides` has an element for each axis of the shape.
  Layout(const Shape& shape, const std::int64_t* strides);

  bool is_contiguous() const { return count_ == 0; }
  std::int64_t run() const { return run_; }
  std::span<const Axis> axes() const { return {axes_.data(), count_}; }

  // Calls body(offset, n) for the runs of the elements [first, last), of which the first run may
  // begin, and the last end, with a part: n elements lie from `offset` elements after the address.
  template <class Body>
  void for_runs(std::int64_t first, std::int64_t last, const Body& body) const;

 private:
  std::array<Axis, Shape::kMaxRank> axes_{};  // outermost first
  std::size_t count_ = 0;
  std::int64_t run_ = 1;
};

// Throws Error{kUsage} that begins with `what` where strides lead further than addresses do.
Layout read_layout(const TensorType& type, const std::int64_t* strides, const std::string& what);
// "strides (8, 1)"
std::string strides_text(const Shape& shape, const std::int64_t* strides);

// The bytes of an array, which its name is kept with for messages.
class MemoryOf {
 public:
  MemoryOf(const TensorRef& array, const Layout& layout, std::string name);

  const std::string& name() const { return name_; }
  // Whether elements may share memory: strides that are shorter than what the shorter ones span.
  bool repeats() const;
  bool overlaps(const MemoryOf& other) const;

 private:
  // Axes with their strides in bytes, the longest first, and the bytes that the later ones span.
  struct ByteAxis {
    std::int64_t size, stride, inner;
  };
  bool touches(std::int64_t first, std::int64_t last, std::size_t axis, std::int64_t base) const;
  bool touched_by(const MemoryOf& other, std::size_t axis, std::int64_t base) const;
  bool is_interleaved_with(const MemoryOf& other) const;

  std::string name_;
  std::int64_t first_, run_, span_;  // addresses and bytes
  std::vector<ByteAxis> axes_;
  bool has_zero_stride_ = false;
};

// Implementation -----------------------------------------------------------------------------

template <class Body>
void Layout::for_runs(std::int64_t first, std::int64_t last, const Body& body) const {
  std::array<std::int64_t, Shape::kMaxRank> index{};
  std::int64_t offset = 0, in_run = first % run_, rest = first / run_;
  for (std::size_t axis = count_; axis-- > 0; rest /= axes_[axis].size) {
    index[axis] = rest % axes_[axis].size;
    offset += index[axis] * axes_[axis].stride;
  }
  while (first < last) {
    const std::int64_t n = std::min(run_ - in_run, last - first);
    body(offset + in_run, n);
    first += n;
    in_run = 0;
    for (std::size_t axis = count_; axis-- > 0;) {
      offset += axes_[axis].stride;
      if (++index[axis] < axes_[axis].size) break;
      offset -= axes_[axis].size * axes_[axis].stride;
      index[axis] = 0;
    }
  }
}

}  // namespace keel::plugin
