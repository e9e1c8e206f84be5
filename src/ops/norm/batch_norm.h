// Batch normalization (Ioffe & Szegedy 2015; Shen et al. 2020, algorithm 1) of each feature over
// the rows of a batch:   y = xhat * gain + bias,   xhat = (x - mean) * rstd,   rstd = 1 / s
//   x (rows, channels) tokens, or (n, channels, h, w) images; B elements a feature, B being rows or
//     n * h * w
//   gain, bias, running_mean, running_var (channels); gain and bias each present or absent
//   mask u8 (rows) or absent, tokens only: rows with 0 are padding. It keeps K rows; K = B without
//     one.
// training: the mean and SS = sum of (x - mean)^2 are those of the kept rows, and
//     s = sqrt(SS / N + eps) with N = K, or K - 1 when `unbiased`;
//     running <- keep * running + (1 - keep) * batch, where the batch's variance is SS / K, or
//     SS / (K - 1) when `running_unbiased`.
//   The state is read before the run and written after it. A batch without a kept row leaves it as
//   it is.
// evaluation: mean = running_mean, s = sqrt(running_var + eps); the state does not change.
//   outputs: y like x;  mean, rstd (channels);  running_mean', running_var' ((0) in evaluation)
// padding: under "exact" padded rows change nothing, and their y and dx are 0.
//   Under "pn_code" they count as rows that hold the mean of the kept ones, as in the release of
//   Shen et al.: SS is divided by B or B - 1 in place of K or K - 1, their y is the bias, their dx
//   is 0, and dbias has their dy.
// backward (Exact), batch_norm_backward (x, gain, mean, rstd, dy, mask), with g = dy * gain:
//     training    dx = rstd * (g - mean(g) - xhat * sum(g * xhat) / N), both over the kept rows
//     evaluation  dx = rstd * g
//     dgain = sum of dy * xhat;   dbias = sum of dy
//   outputs: dx like x;  dgain, dbias like gain and bias, or (0) when absent
// penalties: regularized batch norm (RBN; Wang, Wu, Huang 2022, arXiv 2210.05153) has a loss that
//     also keeps the batch's statistics near the running ones, which count as constants,
//         mean_penalty * (mean - running_mean')^2 + deviation_penalty * (s - s')^2
//     with s' = sqrt(running_var' + eps), added up over the features. The loss is no output: the
//     backward, which then takes running_mean' and running_var' as well, adds its gradient
//         2 mean_penalty * (mean - running_mean') / K + 2 deviation_penalty * (s - s') * xhat / N
//     to dx of the kept rows. Each norm and each step adds it once, whatever dy is scaled by. In
//     evaluation there is none.
// moments: the column_moments of x and mask, or those of several shards merged; absent, the norm
//     forms them itself, to the same bits. So has the backward its sums, the centred_gradient_sums
//     (src/ops/column_moments.h), with `padding` under "pn_code". They say what K and B are.
// errors: rank neither 2 nor 4; B = 0; parameters not (channels); eps < 0; keep outside [0, 1];
//     a penalty < 0, or one without running_mean' and running_var' in the backward; an unbiased
//     estimate of B = 1; a mask for images; moments or sums not f64 (4, channels) and
//     (5 or 6, channels); moments in evaluation. A mask that keeps one row is no error: the
//     unbiased variance of that row is 0 (see variance_count).
// in place: dx over dy; running_mean' and running_var' over what they follow.
#pragma once

#include "src/ops/norm/norm.h"

namespace keel {

struct BatchNormInput {
  enum Place : int { kX, kGain, kBias, kRunningMean, kRunningVar, kMask, kMoments };
};
struct BatchNormOutput {
  enum Place : int { kY, kMean, kRstd, kNextRunningMean, kNextRunningVar };
};
struct BatchNormBackwardInput {
  enum Place : int {
    kX,
    kGain,
    kMean,
    kRstd,
    kDy,
    kMask,
    kSums,
    kNextRunningMean,
    kNextRunningVar
  };
};
using BatchNormGradient = AffineGradient;

enum class ColumnPadding { kExact, kPnCode };
constexpr auto choice_words(ColumnPadding) {
  return std::to_array<std::string_view>({"exact", "pn_code"});
}

struct BatchNormAttrs {
  double eps = 1e-5, keep = 0.9;
  bool unbiased = false, running_unbiased = false, training = true;
  ColumnPadding padding = ColumnPadding::kExact;
  double mean_penalty = 0, deviation_penalty = 0;
  static constexpr auto fields() {
    return std::tuple{field("eps", &BatchNormAttrs::eps),
                      field("keep", &BatchNormAttrs::keep),
                      field("unbiased", &BatchNormAttrs::unbiased),
                      field("running_unbiased", &BatchNormAttrs::running_unbiased),
                      field("training", &BatchNormAttrs::training),
                      field("padding", &BatchNormAttrs::padding),
                      field("mean_penalty", &BatchNormAttrs::mean_penalty),
                      field("deviation_penalty", &BatchNormAttrs::deviation_penalty)};
  }
  bool counts_padding() const { return padding == ColumnPadding::kPnCode; }
  bool has_penalty() const { return training && (mean_penalty > 0 || deviation_penalty > 0); }
};
using BatchNormBackwardAttrs = WithDbias<BatchNormAttrs>;

extern const OpInfo kBatchNorm, kBatchNormBackward;

namespace ops {

// The mask and the moments may be absent.
struct RunningStatistics {
  Value mean, var, mask = {}, moments = {};
};
// Returns y. In training, pass running_mean' and running_var' to mark_update.
Value batch_norm(Graph& g, Value x, const NormAffine& affine, const RunningStatistics& running,
                 const BatchNormAttrs& attrs);

}  // namespace ops
}  // namespace keel
