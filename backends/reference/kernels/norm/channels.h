// A view of one channel at a time of a tensor whose channels are normalized over the batch, without
// the rows that a mask leaves out.
#pragma once

#include <vector>

#include "backends/reference/kernels/kernels.h"
#include "src/ops/norm/sizes.h"

namespace keel::reference {

using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using KeptRows = std::vector<Eigen::Index>;

// The rows of an (outer, channels, inner) tensor that the mask u8 (outer) keeps; all
// rows if there is no mask.
inline KeptRows kept_rows(const TensorRef& mask, const ColumnSizes& s) {
  KeptRows rows;
  for (Eigen::Index row = 0; row < s.outer; ++row) {
    if (!mask || mask.as<std::uint8_t>()[row] != 0) rows.push_back(row);
  }
  return rows;
}

inline auto channel(const TensorRef& t, const ColumnSizes& s, Eigen::Index c) {
  using Stride = Eigen::OuterStride<>;
  return Eigen::Map<RowMajor, Eigen::Unaligned, Stride>(t.as<double>() + c * s.inner, s.outer,
                                                        s.inner, Stride(s.channels * s.inner));
}

// The kept rows of channel c: (kept, inner).
inline RowMajor read_channel(const TensorRef& t, const ColumnSizes& s, const KeptRows& rows,
                             Eigen::Index c) {
  return channel(t, s, c)(rows, Eigen::all);
}

// Writes `values` to the kept rows of channel c, and 0 to the rows left out.
inline void write_channel(const TensorRef& t, const ColumnSizes& s, const KeptRows& rows,
                          Eigen::Index c, const RowMajor& values) {
  auto to = channel(t, s, c);
  to.setZero();
  to(rows, Eigen::all) = values;
}

inline double element_or(const TensorRef& t, Eigen::Index c, double otherwise) {
  return t ? t.as<double>()[c] : otherwise;
}

}  // namespace keel::reference
