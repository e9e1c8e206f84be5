// Ops that compute the batch statistics of column norms (batch_norm and its variants). A norm that
// is given them does not sum x again, and its results have the same bits. So statistics can be
// merged over the shards of a batch (moments -> merge -> norm), or kept while y is recomputed.
//   x (rows, channels) tokens, or (n, channels, h, w) images; B elements a channel, B being rows or
//     n * h * w
//   mask u8 (rows) or absent, tokens only: rows with 0 are left out. K of the B elements of a
//     channel are kept; without a mask K = B.
// Statistics are sums in float64 on every backend, whatever the type of x, a row for each kind:
//   column_moments (x, mask) -> f64 (4, channels), the rows of MomentRow: K, B, the mean of the
//     kept elements, and the sum of (x - mean)^2 over them; the last two are 0 where K = 0. They
//     serve batch_norm, with noise after it or without, and batch_renorm.
//   column_squares (x, mask) -> f64 (3, channels), the rows of SquareRow: K, B and the sum of x^2
//     over the kept elements; with `all_rows` (4, channels), the last row being that sum over all B
//     elements, which power_norm needs with pad_stats. They serve pn_v, mabn and power_norm.
//   merge_moments (parts f64 (shards, 4, channels)) -> (4, channels), the moments of all shards
//     together, in their order: with n elements so far, a shard of k more with the sum of squares
//     s, and d = its mean - the mean so far: mean += d k / (n + k), and the sum of squares
//     += s + d^2 n k / (n + k) (Chan, Golub, LeVeque 1983). A shard with K = 0 adds only to B.
//   merge_sums (parts f64 (shards, kinds, channels)) -> (kinds, channels), the sums over the shards
//     in their order. It merges squares, and the sums of src/ops/column_gradient_sums.h.
// None of these ops has a backward: the backward of the norm also differentiates through the
//     statistics. If they are merged from those of all shards (src/ops/shard_parts.h), and the
//     norm's own x and mask gave one part, its backward merges gradient sums in the same way: dx is
//     for the rows of its shard, but dgain, dbias and the next states for all shards together. A
//     gradient by way of any other statistics is refused; give merged sums to the norm's backward
//     op.
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
// The number of rows of squares. Without all_rows the last row, kAllSquares, is left out.
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
