// Unified normalization (Yang et al. 2022, arXiv 2208.01313), by its authors' program: PowerNorm's
// successor. Batch statistics are smoothed over a window of the last m steps, forward and backward,
// unless the batch is an outlier. Nothing is subtracted:
//     y = z * gain + bias,   z = x * rstd,   rstd = 1 / sqrt(V + eps)
//   x, gain, bias, mask: as for mabn
//   x2, gz (m, channels), which start at 0: ring buffers of the last m values of mean(x^2) and of
//     mean(g * z)
//   v, nu (channels), the running V and the running mean(g * z), which start at 1 and 0
//   step () i32, the number of training steps so far
//   A batch without a kept row leaves every state as it is.
// training, in the t-th step, t = step + 1, with the phases of mabn:
//     x2[t mod m] = mean(x^2) of the batch
//     With A and G, the arithmetic and the geometric mean over the rows of x2, and S, the unbiased
//       variance of all m * channels roots of x2 before the step, the batch is an outlier if
//       `filter` is set, t > m, t >= warmup, and A - G > m * S in any channel. Then
//       x2[t mod m] = v.
//     skips = 1 if the batch is an outlier or m = 1, else 0: such a batch uses its own statistics
//     V = G if t > m, t >= warmup and skips = 0, else mean(x^2)
//     ratio = clip(sqrt(V + eps) / sqrt(v + eps), 1 / clip, clip) if t > max(clip_after, warmup)
//       and skips = 0; else 1
//     v <- keep * v + (1 - keep) * V;   step <- t
//   The states are read before the run and written after it.
// evaluation: V = v, ratio = 1, skips = 0; no state changes.
//   outputs: y like x;  rstd, ratio (channels);  skips ();  x2', v', step' ((0) in evaluation)
// backward (Surrogate), unified_norm_backward (x, gain, rstd, ratio, skips, gz, nu, step, dy,
// mask), with g = dy * gain * ratio:
//     gz[t mod m] = nu if skips, else mean(g * z)
//     M = mean over the rows of gz where V is G, else mean(g * z)
//     nu' = keep * nu + (1 - keep) * M
//     training    dx = rstd * (g - z * nu'), but with skips dx = rstd * (g - z * M), the derivative
//     evaluation  dx = rstd * g
//     dgain = sum of dy * z * ratio;   dbias = sum of dy
//   outputs: dx like x;  dgain, dbias like gain and bias, or (0) when absent;  gz', nu' ((0) in
//   evaluation)
//   ratio scales dx and dgain, but not y, as in the program.
// squares, sums: the column_squares and uncentred_gradient_sums, as for pn_v
// The backward rule reports gz' and nu' as the states' next values (src/autodiff/gradient.h). Where
//   several nodes read one state, their backwards carry it on from the last node to the first.
// Departures from the program: m is a power of two, so that the root of a geometric mean is a chain
//   of square roots, by which equal values have themselves as their mean on every machine; the
//   filter waits until the window is full (t > m), which only matters with warmup <= m; rows that
//   the mask leaves out do not enter the backward's means; one window length serves both
//   directions; and outliers are not counted. The program suggests the filter for images, and to
//   leave it out for text.
// errors: as for mabn; m no power of two; nu of another shape; skips not ().
// in place: dx over dy; x2', v', gz' and nu' over what they follow: of a ring buffer one row is
//   written.
#pragma once

#include "src/ops/norm/mabn.h"

namespace keel {

struct UnifiedNormInput {
  enum Place : int { kX, kGain, kBias, kX2, kGz, kV, kNu, kStep, kMask, kSquares };
};
struct UnifiedNormOutput {
  enum Place : int { kY, kRstd, kRatio, kSkips, kNextX2, kNextV, kNextStep };
};
struct UnifiedNormBackwardInput {
  enum Place : int { kX, kGain, kRstd, kRatio, kSkips, kGz, kNu, kStep, kDy, kMask, kSums };
};
struct UnifiedNormGradient {
  enum Place : int { kDx, kDgain, kDbias, kNextGz, kNextNu };
};

struct UnifiedNormAttrs {
  double eps = 1e-5, keep = 0.9, clip = 5;
  std::int64_t m = 4, warmup = 4000, clip_after = 1000;
  bool filter = true, training = true;
  static constexpr auto fields() {
    using A = UnifiedNormAttrs;
    return std::tuple{field("eps", &A::eps),       field("keep", &A::keep),
                      field("clip", &A::clip),     field("m", &A::m),
                      field("warmup", &A::warmup), field("clip_after", &A::clip_after),
                      field("filter", &A::filter), field("training", &A::training)};
  }
  // The phase of the training step that comes after `step` earlier ones.
  constexpr MabnPhase phase(std::int32_t step) const {
    return mabn_phase({.m = m, .warmup = warmup, .clip_after = clip_after}, step);
  }
};
using UnifiedNormBackwardAttrs = WithDbias<UnifiedNormAttrs>;

extern const OpInfo kUnifiedNorm, kUnifiedNormBackward;

namespace ops {

// The mask and the squares may be absent.
struct UnifiedNormState {
  Value x2, gz, v, nu, step, mask, squares = {};
};
// Returns y. In training, pass x2', v' and step' to mark_update.
Value unified_norm(Graph& g, Value x, const NormAffine& affine, const UnifiedNormState& state,
                   const UnifiedNormAttrs& attrs);

}  // namespace ops
}  // namespace keel
