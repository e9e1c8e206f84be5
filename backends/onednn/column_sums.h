// The workspace of sums over rows, one sum a column, while blocks of rows are visited.
#pragma once

#include <cstddef>
#include <cstdint>

namespace keel::onednn {

// `count` kinds of sums (dgain, dbias, ...) of `stride` columns for each of `blocks` blocks: in
// double, and in float for the run of rows that is being visited. Columns are padded to whole
// registers of at most 16 floats.
struct ColumnSums {
  std::size_t count, stride, blocks;

  ColumnSums(std::size_t kinds, std::int64_t columns, std::int64_t row_blocks)
      : count(kinds),
        stride((std::size_t(columns) + 15) / 16 * 16),
        blocks(std::size_t(row_blocks)) {}

  std::int64_t bytes() const {
    return std::int64_t(blocks * count * stride * (sizeof(double) + sizeof(float)));
  }
  double* total(void* workspace, std::size_t block) const {
    return static_cast<double*>(workspace) + block * count * stride;
  }
  float* run(void* workspace, std::size_t block) const {
    return reinterpret_cast<float*>(total(workspace, blocks)) + block * count * stride;
  }
};

}  // namespace keel::onednn
