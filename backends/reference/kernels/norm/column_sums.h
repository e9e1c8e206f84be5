// The sums of column norms over a batch, one channel at a time: computed from x and dy, or read
// from a node's input (src/ops/column_moments.h, src/ops/column_gradient_sums.h).
#pragma once

#include "backends/reference/kernels/norm/channels.h"
#include "src/ops/column_gradient_sums.h"
#include "src/ops/column_moments.h"

namespace keel::reference {

// The elements that enter the sums: those of the kept rows.
struct Kept {
  const ColumnSizes& sizes;
  const KeptRows& rows;

  RowMajor read(const TensorRef& t, Eigen::Index c) const {
    return read_channel(t, sizes, rows, c);
  }
  double count() const { return double(std::int64_t(rows.size()) * sizes.inner); }
  double all() const { return double(sizes.count()); }
};

// The entry of channel c in row `place` of sums (rows, channels).
inline double given_sum(const TensorRef& sums, int place, Eigen::Index c) {
  return sums.as<double>()[place * sums.type.shape[1] + c];
}

// The number of kept elements of a channel; given sums count those of other shards too.
inline double kept_count(const TensorRef& given, const Kept& kept) {
  return given && given.elements() > 0 ? given_sum(given, 0, 0) : kept.count();
}

struct Moments {
  double count, all, mean = 0, squares = 0;
};
inline Moments form_moments(const TensorRef& tensor, const Kept& kept, Eigen::Index c) {
  Moments of{kept.count(), kept.all()};
  const Eigen::ArrayXXd x = kept.read(tensor, c).array();
  if (x.size() == 0) return of;
  of.mean = x(0, 0) + (x - x(0, 0)).mean();  // exact for a constant channel
  of.squares = (x - of.mean).square().sum();
  return of;
}
inline Moments moments_of(const TensorRef& given, const TensorRef& x, const Kept& kept,
                          Eigen::Index c) {
  using Row = MomentRow;
  if (!given) return form_moments(x, kept, c);
  return {given_sum(given, Row::kCount, c), given_sum(given, Row::kAll, c),
          given_sum(given, Row::kMean, c), given_sum(given, Row::kSquares, c)};
}

// Sums of x^2 over the kept elements and, if `all_rows`, over all elements.
struct Squares {
  double count, all, kept, of_all = 0;
};
inline Squares form_squares(const TensorRef& x, const Kept& kept, Eigen::Index c, bool all_rows) {
  const double squares = kept.read(x, c).squaredNorm();
  return {kept.count(), kept.all(), squares,
          all_rows ? channel(x, kept.sizes, c).squaredNorm() : 0};
}
inline Squares given_squares(const TensorRef& given, Eigen::Index c, bool all_rows) {
  using Row = SquareRow;
  return {given_sum(given, Row::kCount, c), given_sum(given, Row::kAll, c),
          given_sum(given, Row::kSquares, c), all_rows ? given_sum(given, Row::kAllSquares, c) : 0};
}

struct CentredSums {
  double count, all, xhat, dy, dy_xhat, padding_dy = 0;
};
// The tensors of a backward; its statistics are those of channel c.
struct CentredTensors {
  const TensorRef &x, &dy;
  double mean, rstd;
};
inline CentredSums form_sums(const CentredTensors& t, const Kept& kept, Eigen::Index c) {
  const Eigen::ArrayXXd xhat = (kept.read(t.x, c).array() - t.mean) * t.rstd;
  const Eigen::ArrayXXd dy = kept.read(t.dy, c).array();
  CentredSums of{kept.count(), kept.all(), xhat.sum(), dy.sum(), (dy * xhat).sum()};
  auto next = kept.rows.begin();
  for (Eigen::Index row = 0; row < kept.sizes.outer; ++row) {
    if (next != kept.rows.end() && *next == row) {
      ++next;
    } else {
      of.padding_dy += channel(t.dy, kept.sizes, c).row(row).sum();
    }
  }
  return of;
}
inline CentredSums given_centred(const TensorRef& given, Eigen::Index c, bool padding) {
  using Row = CentredSumRow;
  return {given_sum(given, Row::kCount, c),  given_sum(given, Row::kAll, c),
          given_sum(given, Row::kXhat, c),   given_sum(given, Row::kDy, c),
          given_sum(given, Row::kDyXhat, c), padding ? given_sum(given, Row::kPaddingDy, c) : 0};
}

struct UncentredSums {
  double count, all, dy, dy_xhat, all_dy_xhat = 0;
};
struct UncentredTensors {
  const TensorRef &x, &dy;
  double rstd;
};
inline UncentredSums form_sums(const UncentredTensors& t, const Kept& kept, Eigen::Index c,
                               bool all_rows) {
  const RowMajor xhat = kept.read(t.x, c) * t.rstd, dy = kept.read(t.dy, c);
  UncentredSums of{kept.count(), kept.all(), dy.sum(), dy.cwiseProduct(xhat).sum()};
  if (!all_rows) return of;
  const RowMajor every_xhat = channel(t.x, kept.sizes, c) * t.rstd;
  of.all_dy_xhat = channel(t.dy, kept.sizes, c).cwiseProduct(every_xhat).sum();
  return of;
}
inline UncentredSums given_uncentred(const TensorRef& given, Eigen::Index c, bool all_rows) {
  using Row = UncentredSumRow;
  return {given_sum(given, Row::kCount, c), given_sum(given, Row::kAll, c),
          given_sum(given, Row::kDy, c), given_sum(given, Row::kDyXhat, c),
          all_rows ? given_sum(given, Row::kAllDyXhat, c) : 0};
}

}  // namespace keel::reference
