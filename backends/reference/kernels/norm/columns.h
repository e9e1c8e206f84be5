// Channels of a tensor, and the rows of them that a mask keeps, as the reference column norms see
// them.
#pragma once

#include <vector>

#include "backends/reference/kernels/kernels.h"
#include "src/ops/norm/batch_norm.h"

namespace keel::reference {

using Channel = Eigen::Map<Eigen::Array<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>,
                           Eigen::Unaligned, Eigen::OuterStride<>>;
using Rows = std::vector<Eigen::Index>;

// The elements (outer, inner) of channel c of a tensor (outer, channels, inner).
inline Channel channel(const TensorRef& t, const ColumnSizes& s, Eigen::Index c) {
  return {t.as<double>() + c * s.inner, s.outer, s.inner,
          Eigen::OuterStride<>(s.channels * s.inner)};
}

// The outer rows that a mask u8 (outer) keeps; all of them without a mask.
inline Rows kept_rows(const TensorRef& mask, const ColumnSizes& s) {
  Rows rows;
  for (Eigen::Index row = 0; row < s.outer; ++row) {
    if (!mask || mask.as<std::uint8_t>()[row] != 0) rows.push_back(row);
  }
  return rows;
}

inline Eigen::ArrayXXd kept(const TensorRef& t, const ColumnSizes& s, Eigen::Index c,
                            const Rows& rows) {
  return channel(t, s, c)(rows, Eigen::all);
}

// Channel c becomes `values` in the rows that are kept and 0 elsewhere.
inline void put(const TensorRef& t, const ColumnSizes& s, Eigen::Index c, const Rows& rows,
                const Eigen::ArrayXXd& values) {
  Channel all = channel(t, s, c);
  all.setZero();
  all(rows, Eigen::all) = values;
}

inline double element_or(const TensorRef& t, Eigen::Index c, double otherwise) {
  return t ? t.as<double>()[c] : otherwise;
}

}  // namespace keel::reference
