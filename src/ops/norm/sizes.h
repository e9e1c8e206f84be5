// How norms see the shape of x: as rows, as columns, or as groups of channels.
#pragma once

#include "src/core/shape.h"

namespace keel {

// x seen as a matrix (rows, width), as the norms over its last `axes` axes see it: a row is one
// place along the other axes.
struct RowSizes {
  std::int64_t rows, width;
};
inline RowSizes row_sizes(const Shape& x, std::int64_t axes) {
  const int split = x.rank() - static_cast<int>(axes);
  return {x.elements(0, split), x.elements(split, x.rank())};
}

// The shape of one such row, which is also the shape of a gain or bias for each of its elements.
inline Shape row_shape(const Shape& x, std::int64_t axes) {
  return Shape(x.sizes().last(std::size_t(axes)));
}

// x seen as (outer, channels, inner), as the norms over the batch see it: inner is 1 for tokens
// (rows, channels) and h * w for images (n, channels, h, w).
struct ColumnSizes {
  std::int64_t outer, channels, inner;
  // The number of elements of one channel.
  std::int64_t count() const { return outer * inner; }
};
inline ColumnSizes column_sizes(const Shape& x) { return {x[0], x[1], x.elements(2, x.rank())}; }

// x seen as (samples, groups, channels, inner), where `channels` are those of one group and inner
// is 1 for tokens and h * w for images. The elements of a group are neighbours.
struct GroupSizes {
  std::int64_t samples, groups, channels, inner;
  // The number of elements of one group.
  std::int64_t width() const { return channels * inner; }
};
inline GroupSizes group_sizes(const Shape& x, std::int64_t groups) {
  return {x[0], groups, x[1] / groups, x.elements(2, x.rank())};
}

// x as the norms of a feature over the steps of a sample see it.
struct SequenceSizes {
  std::int64_t samples, steps, channels;
};
inline SequenceSizes sequence_sizes(const Shape& x) { return {x[0], x[1], x[2]}; }

}  // namespace keel
