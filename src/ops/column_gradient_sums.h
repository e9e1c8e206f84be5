// The sums over the rows of a batch that the backward of a column norm needs, as a value of its
// own: f64, a row for each kind, on every backend. A backward that is given them does not sum x and
// dy again, and its results have the same bits. x, dy, the mask, K and B are as in
// src/ops/column_moments.h; sums are over the K kept elements unless stated otherwise.
//   centred_gradient_sums (x, mean, rstd, dy, mask) -> (5, channels), the rows of CentredSumRow:
//     K,  B,  sum of xhat,  sum of dy,  sum of dy * xhat,  with xhat = (x - mean) * rstd. They are
//     those of batch_norm and batch_renorm. With `padding` (6, channels), the last row being the
//     sum of dy over the rows left out, for a batch_norm that counts them. The sum of xhat is 0 but
//     for the rounding of the mean, which a backward may put right by it.
//   uncentred_gradient_sums (x, rstd, dy, mask) -> (4, channels), the rows of UncentredSumRow:
//     K,  B,  sum of dy,  sum of dy * xhat,  with xhat = x * rstd. They are those of pn_v, mabn and
//     power_norm. With `all_rows` (5, channels), the last row being the last sum over all B
//     elements, for the pad_stats of power_norm.
// They have no backward. merge_sums adds up those of several shards.
// errors: as the norms have them for x and mask; mean, rstd or rstd not (channels); dy not like x.
#pragma once

#include "src/graph/graph.h"

namespace keel {

struct CentredSumRow {
  enum Place : int { kCount, kAll, kXhat, kDy, kDyXhat, kPaddingDy, kRows };
};
constexpr std::int64_t centred_sum_rows(bool padding) {
  return padding ? CentredSumRow::kRows : CentredSumRow::kPaddingDy;
}
struct UncentredSumRow {
  enum Place : int { kCount, kAll, kDy, kDyXhat, kAllDyXhat, kRows };
};
constexpr std::int64_t uncentred_sum_rows(bool all_rows) {
  return all_rows ? UncentredSumRow::kRows : UncentredSumRow::kAllDyXhat;
}

struct CentredSumsInput {
  enum Place : int { kX, kMean, kRstd, kDy, kMask };
};
struct UncentredSumsInput {
  enum Place : int { kX, kRstd, kDy, kMask };
};

struct CentredSumsAttrs {
  bool padding = false;
  static constexpr auto fields() {
    return std::tuple{field("padding", &CentredSumsAttrs::padding)};
  }
};
struct UncentredSumsAttrs {
  bool all_rows = false;
  static constexpr auto fields() {
    return std::tuple{field("all_rows", &UncentredSumsAttrs::all_rows)};
  }
};

extern const OpInfo kCentredGradientSums, kUncentredGradientSums;

namespace ops {

// The tensors that the sums are formed from; the mask may be absent.
struct CentredColumns {
  Value x, mean, rstd, dy, mask = {};
};
struct UncentredColumns {
  Value x, rstd, dy, mask = {};
};
Value centred_gradient_sums(Graph& g, const CentredColumns& of, const CentredSumsAttrs& attrs = {});
Value uncentred_gradient_sums(Graph& g, const UncentredColumns& of,
                              const UncentredSumsAttrs& attrs = {});

}  // namespace ops
}  // namespace keel
