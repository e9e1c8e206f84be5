// Moving average batch normalization (Yan et al. 2020): batch statistics of few rows, forward and
// backward, are replaced by their averages over the last m steps. Nothing is subtracted:
//     y = z * r * gain + bias,   z = x * rstd,   rstd = 1 / sqrt(V + eps)
//   x (rows, channels) tokens, or (n, channels, h, w) images; B elements a feature, B being rows or
//     n * h * w
//   gain, bias (channels), each present or absent
//   x2, gz (m, channels), which start at 0: ring buffers of the last m values of mean(x^2) and of
//     mean(g * z)
//   v (channels), the running V, which starts at 1;   step () i32, the number of training steps so
//     far
//   mask u8 (rows) or absent, tokens only: rows with 0 take no part; their y and dx are 0. A batch
//     without a kept row leaves every state as it is.
// training, in the t-th step, t = step + 1:
//     x2[t mod m] = mean(x^2) of the batch
//     V = mean over the rows of x2 if t > m and t >= warmup, else mean(x^2)
//     r = clip(sqrt(V + eps) / sqrt(v + eps), 1 / clip, clip) if t > max(clip_after, warmup);
//       else 1
//     v <- keep * v + (1 - keep) * V;   step <- t
//   The states are read before the run and written after it.
// evaluation: V = v, r = 1; no state changes.
//   outputs: y like x;  rstd, r (channels);  x2', v', step' ((0) in evaluation)
// backward (Surrogate), mabn_backward (x, gain, rstd, r, gz, step, dy, mask), g = dy * gain * r:
//     gz[t mod m] = mean(g * z);   G = mean over the rows of gz where V is one, else mean(g * z)
//     training    dx = rstd * (g - z * G), the derivative for a constant r where V is no average
//     evaluation  dx = rstd * g
//     dgain = sum of dy * z * r;   dbias = sum of dy
//   outputs: dx like x;  dgain, dbias like gain and bias, or (0) when absent;  gz' ((0) in
//   evaluation)
// squares, sums: the column_squares and uncentred_gradient_sums, as for pn_v
// The backward rule reports gz' as the state's next value (src/autodiff/gradient.h). Where several
//   nodes read one gz, their backwards carry it on from the last node to the first.
// errors: rank neither 2 nor 4; B = 0; parameters or states of another shape; m < 1; eps < 0; keep
//     outside [0, 1]; clip < 1; a mask for images; squares or sums not f64 (3, channels) and
//     (4, channels); squares in evaluation.
// in place: dx over dy; x2', gz' and v' over what they follow: of a ring buffer one row is written.
#pragma once

#include "src/ops/norm/norm.h"

namespace keel {

struct MabnInput {
  enum Place : int { kX, kGain, kBias, kX2, kGz, kV, kStep, kMask, kSquares };
};
struct MabnOutput {
  enum Place : int { kY, kRstd, kR, kNextX2, kNextV, kNextStep };
};
struct MabnBackwardInput {
  enum Place : int { kX, kGain, kRstd, kR, kGz, kStep, kDy, kMask, kSums };
};
struct MabnGradient {
  enum Place : int { kDx, kDgain, kDbias, kNextGz };
};

struct MabnAttrs {
  double eps = 1e-5, keep = 0.98, clip = 5;
  std::int64_t m = 16, warmup = 100, clip_after = 1000;
  bool training = true;
  static constexpr auto fields() {
    using A = MabnAttrs;
    return std::tuple{field("eps", &A::eps),          field("keep", &A::keep),
                      field("clip", &A::clip),        field("m", &A::m),
                      field("warmup", &A::warmup),    field("clip_after", &A::clip_after),
                      field("training", &A::training)};
  }
};
using MabnBackwardAttrs = WithDbias<MabnAttrs>;

// The parts of the formulas that depend on the number t of a training step.
struct MabnPhase {
  std::int64_t row;  // t mod m, the row of the ring buffers that the step writes
  bool averages;     // whether V is the mean over the rows of x2
  bool clips;        // whether r is the clipped ratio, not 1
};
// The phase of the training step that comes after `step` earlier ones.
constexpr MabnPhase mabn_phase(const MabnAttrs& attrs, std::int32_t step) {
  const std::int64_t t = std::int64_t{step} + 1;
  const std::int64_t clip_after = attrs.clip_after > attrs.warmup ? attrs.clip_after : attrs.warmup;
  // The row lies within the ring even for a step below 0.
  return {(t % attrs.m + attrs.m) % attrs.m, t > attrs.m && t >= attrs.warmup, t > clip_after};
}

extern const OpInfo kMabn, kMabnBackward;

namespace ops {

// The mask and the squares may be absent.
struct MabnState {
  Value x2, gz, v, step, mask, squares = {};
};
// Returns y. In training, pass x2', v' and step' to mark_update.
Value mabn(Graph& g, Value x, const NormAffine& affine, const MabnState& state,
           const MabnAttrs& attrs);

}  // namespace ops
}  // namespace keel
