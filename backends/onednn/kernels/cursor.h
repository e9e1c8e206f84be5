// A cursor that walks over the positions of a tensor in row-major order.
#pragma once

#include <array>

#include "src/core/shape.h"

namespace keel::onednn {

using Sizes = std::array<std::int64_t, Shape::kMaxRank>;

// One index for each axis; the last axis changes fastest.
class Cursor {
 public:
  Cursor(const Sizes& sizes, int rank, std::int64_t index) : sizes_(sizes), rank_(rank) {
    for (int axis = rank - 1; axis >= 0; --axis) {
      place_[std::size_t(axis)] = index % sizes[std::size_t(axis)];
      index /= sizes[std::size_t(axis)];
    }
  }
  const Sizes& place() const { return place_; }
  void next() {
    for (int axis = rank_ - 1; axis >= 0; --axis) {
      if (++place_[std::size_t(axis)] < sizes_[std::size_t(axis)]) return;
      place_[std::size_t(axis)] = 0;
    }
  }
  std::int64_t offset(const Sizes& strides) const {
    std::int64_t offset = 0;
    for (std::size_t axis = 0; axis < std::size_t(rank_); ++axis) {
      offset += place_[axis] * strides[axis];
    }
    return offset;
  }

 private:
  const Sizes& sizes_;
  int rank_;
  Sizes place_{};
};

}  // namespace keel::onednn
