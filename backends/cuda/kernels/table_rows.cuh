// The gradient of a table, given as rows (src/ops/row_gradient.h), group4 by group4.
#pragma once

#include "backends/cuda/kernels/joined.cuh"

namespace keel::cuda {

// The piece of this block, in a launch for one tensor only.
__device__ inline Piece piece_of(std::int64_t groups4, std::int64_t length) {
  const std::int64_t number = blockIdx.x, first = number * length;
  return {0, number, first, first + length < groups4 ? first + length : groups4};
}

struct TableRows {
  // A range of row indices: the rows that may contain elements of a piece.
  struct Range {
    std::int64_t first, last;
  };

  Global<const std::int32_t> ids;  // (n), ascending; entries without a gradient have ids past it
  Global<const float> rows;        // (n, width)
  std::int64_t width;

  TableRows(const TensorRef& of_rows, const TensorRef& of_ids)
      : ids(global<const std::int32_t>(of_ids)),
        rows(input(of_rows)),
        width(of_rows.type.shape[1]) {}

  // The first index in the range whose id is at least `id`.
  __device__ std::int64_t first_from(std::int64_t id, Range within) const {
    while (within.first < within.last) {
      const std::int64_t middle = (within.first + within.last) / 2;
      if (ids[middle] < id) {
        within.first = middle + 1;
      } else {
        within.last = middle;
      }
    }
    return within.first;
  }

  // All threads of the block get the range of its piece; the function has a barrier before that.
  __device__ Range range_of(const Piece& piece) const {
    __shared__ Shared<std::int64_t, 2> ends;
    if (threadIdx.x < 2) {
      const std::int64_t element = 4 * (threadIdx.x == 0 ? piece.first : piece.last) - threadIdx.x;
      ends[int(threadIdx.x)] = first_from(element / width + threadIdx.x, {0, ids.size()});
    }
    __syncthreads();
    return {ends[0], ends[1]};
  }

  // Writes group4 q of the gradient to `group4`, which must be 0 before, and returns a mask of the
  // elements that belong to given rows.
  __device__ unsigned read(std::int64_t q, Range near, Group4& group4) const {
    unsigned found = 0;
    if (near.first == near.last) return found;
    std::int64_t row = 4 * q / width, column = 4 * q % width;
    std::int64_t place = first_from(row, near);
    for (int i = 0; i < 4; ++i) {
      if (place < near.last && ids[place] == row) {
        group4.at[i] = rows[place * width + column];
        found |= 1u << i;
      }
      if (++column == width) {
        column = 0;
        ++row;
        if (place < near.last && ids[place] < row) ++place;
      }
    }
    return found;
  }
};

}  // namespace keel::cuda
