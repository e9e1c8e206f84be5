// Batch renormalization (Ioffe 2017): batch normalization whose output is moved to where the
// running statistics would have put it,
//     y = out * gain + bias,   out = xhat * r + d,   xhat = (x - mean) * rstd,   rstd = 1 / s
//   x (rows, channels) tokens, or (n, channels, h, w) images; B elements a feature, B being rows or
//     n * h * w
//   gain, bias (channels), each present or absent
//   running_mean, running_std (channels), which start at 0 and 1
//   step () i32, the number of training steps so far
//   mask u8 (rows) or absent, tokens only: rows with 0 take no part; their y and dx are 0. A batch
//     without a kept row leaves every state as it is.
// training: the mean and s = sqrt(SS / B + eps) are those of the batch, and with the running values
//     from before this step
//     r = clip(s / running_std, 1 / r_max, r_max)
//     d = clip((mean - running_mean) / running_std, -d_max, d_max)
//     running_mean += rate * (mean - running_mean);   running_std += rate * (s - running_std);
//     step += 1.      Where nothing is clipped, y is what evaluation gives.
// evaluation: out = (x - running_mean) / running_std; no state changes.
//   outputs: y like x;  mean, rstd, r, d (channels);  running_mean', running_std', step' ((0) in
//     evaluation)
// backward (Detached: r and d count as constants), batch_renorm_backward (x, gain, mean, rstd, r,
// d, dy, mask), with g = dy * gain:
//     training    dx = r * rstd * (g - mean(g) - xhat * mean(g * xhat))
//     evaluation  dx = rstd * g
//     dgain = sum of dy * out;   dbias = sum of dy
//   outputs: dx like x;  dgain, dbias like gain and bias, or (0) when absent
// moments, sums: the column_moments and centred_gradient_sums, as for batch_norm
// errors: rank neither 2 nor 4; B = 0; parameters not (channels); eps < 0; rate outside [0, 1];
//     limits that exclude r = 1 or d = 0; a mask for images; moments or sums not f64 (4, channels)
//     and (5, channels); moments in evaluation.
// in place: dx over dy; running_mean' and running_std' over what they follow.
#pragma once

#include "src/ops/norm/norm.h"

namespace keel {

struct BatchRenormInput {
  enum Place : int { kX, kGain, kBias, kRunningMean, kRunningStd, kStep, kMask, kMoments };
};
struct BatchRenormOutput {
  enum Place : int { kY, kMean, kRstd, kR, kD, kNextRunningMean, kNextRunningStd, kNextStep };
};
struct BatchRenormBackwardInput {
  enum Place : int { kX, kGain, kMean, kRstd, kR, kD, kDy, kMask, kSums };
};
using BatchRenormGradient = AffineGradient;

struct BatchRenormAttrs {
  double eps = 1e-3, rate = 0.01;
  // The limits of r and d. A negative limit follows a schedule: r_max = 1 and d_max = 0 (plain
  // batch normalization) until step `start`, then a linear change to the final values r_max_limit
  // and d_max_limit, which are reached at step `end`.
  double r_max = -1, d_max = -1;
  double r_max_limit = 3, d_max_limit = 5;
  double r_start = 5000, r_end = 40000, d_start = 5000, d_end = 25000;
  bool training = true;
  static constexpr auto fields() {
    using A = BatchRenormAttrs;
    return std::tuple{field("eps", &A::eps),
                      field("rate", &A::rate),
                      field("r_max", &A::r_max),
                      field("d_max", &A::d_max),
                      field("r_max_limit", &A::r_max_limit),
                      field("d_max_limit", &A::d_max_limit),
                      field("r_start", &A::r_start),
                      field("r_end", &A::r_end),
                      field("d_start", &A::d_start),
                      field("d_end", &A::d_end),
                      field("training", &A::training)};
  }
};
using BatchRenormBackwardAttrs = WithDbias<BatchRenormAttrs>;

struct RenormLimits {
  double r_max, d_max;
};
// The limits in the training step that comes after `step` earlier ones.
constexpr RenormLimits renorm_limits(const BatchRenormAttrs& a, std::int32_t step) {
  // The progress of the schedule: 0 before `start`, 1 from `end` on, linear between.
  const auto ramp = [step](double start, double end) {
    if (step >= end) return 1.0;
    return step <= start ? 0.0 : (step - start) / (end - start);
  };
  const double r = ramp(a.r_start, a.r_end), d = ramp(a.d_start, a.d_end);
  return {a.r_max < 0 ? 1 + (a.r_max_limit - 1) * r : a.r_max,
          a.d_max < 0 ? a.d_max_limit * d : a.d_max};
}

extern const OpInfo kBatchRenorm, kBatchRenormBackward;

namespace ops {

// The mask and the moments may be absent.
struct RenormState {
  Value mean, std, step, mask, moments = {};
};
// Returns y. In training, pass running_mean', running_std' and step' to mark_update.
Value batch_renorm(Graph& g, Value x, const NormAffine& affine, const RenormState& state,
                   const BatchRenormAttrs& attrs);

}  // namespace ops
}  // namespace keel
