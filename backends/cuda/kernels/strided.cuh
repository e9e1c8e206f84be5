// Tensors that are read stretched, sliced or transposed: computes where an element
// of the output lies in them.
#pragma once

#include "backends/cuda/device.h"
#include "src/core/shape.h"

namespace keel::cuda {

// The output's sizes, which give the index of an element along every axis.
struct Extent {
  std::int64_t sizes[Shape::kMaxRank] = {};
  int rank = 0;
};

// For each axis of the output: the offset in a tensor between neighbours along it.
struct Steps {
  std::int64_t along[Shape::kMaxRank] = {};
};

inline Extent extent(const Shape& shape) {
  Extent result;
  result.rank = shape.rank();
  for (int axis = 0; axis < shape.rank(); ++axis) result.sizes[axis] = shape[axis];
  return result;
}

// Row-major steps through a tensor of that shape.
inline Steps steps(const Shape& shape) {
  Steps result;
  const auto strides = shape.strides();
  for (int axis = 0; axis < shape.rank(); ++axis) result.along[axis] = strides[std::size_t(axis)];
  return result;
}

// Steps through a tensor of shape `from` stretched to shape `to`: 0 along stretched axes.
inline Steps stretched(const Shape& from, const Shape& to) {
  const Steps own = steps(from);
  const int lead = to.rank() - from.rank();
  Steps result;
  for (int axis = 0; axis < from.rank(); ++axis) {
    result.along[lead + axis] = from[axis] == 1 ? 0 : own.along[axis];
  }
  return result;
}

// Appends an axis; merges it with the axis before it if both together are like one axis.
inline void append_axis(Extent& extent, Steps& steps, std::int64_t size, std::int64_t step) {
  const int last = extent.rank - 1;
  if (last >= 0 && steps.along[last] == size * step) {
    extent.sizes[last] *= size;
    steps.along[last] = step;
  } else {
    extent.sizes[extent.rank] = size;
    steps.along[extent.rank++] = step;
  }
}

// Where element e of the extent lies.
__device__ inline std::int64_t place(const Extent& extent, const Steps& steps, std::int64_t e) {
  std::int64_t offset = 0;
  for (int axis = extent.rank - 1; axis > 0; --axis) {
    offset += e % extent.sizes[axis] * steps.along[axis];
    e /= extent.sizes[axis];
  }
  return offset + e * steps.along[0];
}

}  // namespace keel::cuda
