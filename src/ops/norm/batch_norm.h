// Batch normalization (Ioffe & Szegedy 2015; Shen et al. 2020, algorithm 1) of each feature over
// the rows of a batch:   y = xhat * gain + bias,   xhat = (x - mean) * rstd
//   x (rows, channels) tokens, or (n, channels, h, w) images; B = rows or n*h*w elements a feature
//   gain, bias, running_mean, running_var (channels); gain and bias each present or absent
//   mask u8 (rows) or absent, tokens only: rows with 0 are padding. K: rows it keeps, or B.
// training: mean and SS = sum of (x - mean)^2 over the kept rows, s = sqrt(SS / N + eps), N = K or
//     K - 1 (`unbiased`), and running <- keep * running + (1 - keep) * batch, with the biased
//     variance, or SS / (K - 1) under `running_unbiased`. The state is read before and written
//     after, once a run. A batch without a kept row leaves it as it is.
// evaluation: mean = running_mean, s = sqrt(running_var + eps); the state does not change.
//   outputs: y like x;  mean, rstd (channels);  running_mean', running_var' ((0) in evaluation)
// padding: under "exact" padded rows might as well not be there: y = 0 and dx = 0.
//   Under "pn_code" they count as rows that hold the mean of the kept ones, as in the release of
//   Shen et al.: SS is divided by B or B - 1 in place of K or K - 1, y = bias and dx = 0, and dbias
//   has their dy. Nothing else comes of it: the row they hold is centred with the rest.
// backward (Exact), batch_norm_backward (x, gain, mean, rstd, dy, mask), with g = dy * gain:
//     training    dx = rstd * (g - mean(g) - xhat * sum(g * xhat) / N), both over the kept rows
//     evaluation  dx = rstd * g
//     dgain = sum of dy * xhat;   dbias = sum of dy
//   outputs: dx like x;  dgain, dbias like gain and bias, or (0) when absent
// errors: rank neither 2 nor 4; B = 0; parameters not (channels); eps < 0; keep outside [0, 1];
//     an unbiased estimate of B = 1; a mask for images.
//     With a mask that keeps one row an unbiased estimate of SS = 0 is 0.
// in place: dx over dy; running_mean' and running_var' over what they follow.
#pragma once

#include <algorithm>

#include "src/ops/norm/norm.h"

namespace keel {

enum class ColumnPadding { kExact, kPnCode };
constexpr auto choice_words(ColumnPadding) {
  return std::to_array<std::string_view>({"exact", "pn_code"});
}

struct BatchNormAttrs {
  double eps = 1e-5, keep = 0.9;
  bool unbiased = false, running_unbiased = false, training = true;
  ColumnPadding padding = ColumnPadding::kExact;
  bool has_bias = false;  // backward only: whether dbias is wanted
  static constexpr auto fields() {
    return std::tuple{field("eps", &BatchNormAttrs::eps),
                      field("keep", &BatchNormAttrs::keep),
                      field("unbiased", &BatchNormAttrs::unbiased),
                      field("running_unbiased", &BatchNormAttrs::running_unbiased),
                      field("training", &BatchNormAttrs::training),
                      field("padding", &BatchNormAttrs::padding),
                      field("has_bias", &BatchNormAttrs::has_bias)};
  }
  bool counts_padding() const { return padding == ColumnPadding::kPnCode; }
};

// What a channel's sum of squares is divided by: n elements less one when unbiased, but never 0.
inline double variance_count(std::int64_t n, bool unbiased) {
  return double(std::max<std::int64_t>(n - (unbiased ? 1 : 0), 1));
}

// x seen as (outer, channels, inner): inner = 1 for tokens, h * w for images.
struct ColumnSizes {
  std::int64_t outer, channels, inner;
  std::int64_t count() const { return outer * inner; }
};
ColumnSizes column_sizes(const Shape& x);

extern const OpInfo kBatchNorm, kBatchNormBackward;

namespace ops {

// The mask may be absent.
struct RunningStatistics {
  Value mean, var, mask = {};
};
// Returns y; in training running_mean' and running_var' are outputs 3 and 4, for mark_update.
Value batch_norm(Graph& g, Value x, const NormAffine& affine, const RunningStatistics& running,
                 const BatchNormAttrs& attrs);

}  // namespace ops
}  // namespace keel
