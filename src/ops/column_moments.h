// The statistics that column norms compute over a batch, as values of their own. A norm that is
// given them does not sum x again, and its results have the same bits. So statistics can be merged
// over the shards of a batch (moments -> merge -> norm), or kept while y is recomputed.
//   x (rows, channels) tokens, or (n, channels, h, w) images; B elements a feature, B being rows or
//     n * h * w
//   mask u8 (rows) or absent, tokens only: rows with 0 are left out. It keeps K elements a feature;
//     K = B without one.
// Statistics are sums in float64 on every backend, whatever the type of x, a row for each kind:
//   column_moments (x, mask) -> f64 (4, channels), the rows of MomentRow: K, B, the mean of the
//     kept elements, and the sum of (x - mean)^2 over them, both 0 where K = 0. They are those of
//     batch_norm, also with noise after it, and of batch_renorm.
//   column_squares (x, mask) -> f64 (3, channels), the rows of SquareRow: K, B and the sum of x^2
//     over the kept elements; with `all_rows` (4, channels), the last row being that sum over all B
//     elements. They are those of pn_v, mabn and power_norm, whose pad_stats needs the last row.
//   merge_moments (parts f64 (shards, 4, channels)) -> (4, channels), the moments of all shards
//     together, in their order: with n elements so far, a shard of k more, and d the difference of
//     its mean, mean += d k / (n + k) and squares += squares' + d^2 n k / (n + k) (Chan, Golub and
//     LeVeque 1983). A shard with K = 0 changes B alone.
//   merge_sums (parts f64 (shards, kinds, channels)) -> (kinds, channels), the sums over the shards
//     in their order. It merges squares, and the sums of src/ops/column_gradient_sums.h.
// None of them has a backward: the norm's own backward includes the gradient by way of
//     the statistics. A norm whose statistics are not those of its own x and mask, such
//     as merged ones, refuses to be differentiated, because it needs gradient sums that
//     are merged in the same way. Give these to its backward op, which returns dx of
//     its own rows, and dgain, dbias and the next states of all shards together.
// errors: as the norms have them for x and mask; parts not f64 of rank 3, or without a shard; parts
//     of merge_moments without 4 rows.
#pragma once

#include "src/graph/graph.h"

namespace keel {

struct MomentRow {
  enum Place : int { kCount, kAll, kMean, kSquares, kRows };
};
struct SquareRow {
  enum Place : int { kCount, kAll, kSquares, kAllSquares, kRows };
};
// The number of rows of squares, with the row over all elements or without it.
constexpr std::int64_t square_rows(bool all_rows) {
  return all_rows ? SquareRow::kRows : SquareRow::kAllSquares;
}

struct ColumnMomentsInput {
  enum Place : int { kX, kMask };
};

struct ColumnSquaresAttrs {
  bool all_rows = false;
  static constexpr auto fields() {
    return std::tuple{field("all_rows", &ColumnSquaresAttrs::all_rows)};
  }
};

extern const OpInfo kColumnMoments, kColumnSquares, kMergeMoments, kMergeSums;

namespace ops {

// The mask may be absent.
Value column_moments(Graph& g, Value x, Value mask);
Value column_squares(Graph& g, Value x, Value mask, const ColumnSquaresAttrs& attrs = {});
Value merge_moments(Graph& g, Value parts);
Value merge_sums(Graph& g, Value parts);

}  // namespace ops
}  // namespace keel
