// Moving average batch normalization (Yan et al. 2020): batch statistics of few rows, forward and
// backward, are replaced by their averages over the last m steps. Nothing is subtracted:
//     y = z * r * gain + bias,   z = x * rstd,   rstd = 1 / sqrt(V + eps)
//   x (rows, channels) tokens, or (n, channels, h, w) images; B = rows or n*h*w elements a feature
//   gain, bias (channels), each present or absent
//   x2, gz (m, channels), start 0: ring buffers of the last m values of mean(x^2) and mean(g * z);
//   v (channels), start 1: running V;   step () i32, start 0: the training steps so far
//   mask u8 (rows) or absent, tokens only: rows with 0 take no part, their y and dx are 0. A batch
//     without a row that is kept leaves every state as it is.
// training, the t-th step, t = step + 1:
//     x2[t mod m] = mean(x^2) of the batch
//     V = mean over the rows of x2 if t > m and t >= warmup, else mean(x^2)
//     r = clip(sqrt(V + eps) / sqrt(v + eps), 1 / clip, clip) if t > max(clip_after, warmup);
//       else 1
//     v <- keep * v + (1 - keep) * V;   step <- t
//   States are read before and written after.
// evaluation: V = v, r = 1; no state changes.
//   outputs: y like x;  rstd, r (channels);  x2', v', step' ((0) in evaluation)
// backward (Surrogate), mabn_backward (x, gain, rstd, r, gz, step, dy, mask), g = dy * gain * r:
//     gz[t mod m] = mean(g * z);   G = mean over the rows of gz where V is one, else mean(g * z)
//     training    dx = rstd * (g - z * G), the derivative for constant r where V is no average
//     evaluation  dx = rstd * g
//     dgain = sum of dy * z * r;   dbias = sum of dy
//   outputs: dx like x;  dgain, dbias like gain and bias, or (0) when absent;  gz' ((0) in
//   evaluation)
// The backward rule reports gz' as the state's next value (src/autodiff/gradient.h). Where several
//   nodes read one gz, their backwards carry it on from the last node to the first.
// errors: rank neither 2 nor 4; B = 0; parameters or states of another shape; m < 1; eps < 0; keep
//     outside [0, 1]; clip < 1; a mask for images.
// in place: dx over dy; x2', gz' and v' over what they follow: of a ring buffer one row is written.
#pragma once

#include "src/ops/norm/batch_norm.h"

namespace keel {

struct MabnAttrs {
  double eps = 1e-5, keep = 0.98, clip = 5;
  std::int64_t m = 16, warmup = 100, clip_after = 1000;
  bool training = true;
  bool has_bias = false;  // backward only: whether dbias is wanted
  static constexpr auto fields() {
    using A = MabnAttrs;
    return std::tuple{field("eps", &A::eps),           field("keep", &A::keep),
                      field("clip", &A::clip),         field("m", &A::m),
                      field("warmup", &A::warmup),     field("clip_after", &A::clip_after),
                      field("training", &A::training), field("has_bias", &A::has_bias)};
  }
};

// What a training step does that follows `step` others.
struct MabnPhase {
  std::int64_t row;  // t mod m, of the ring buffers
  bool averages, clips;
};
constexpr MabnPhase mabn_phase(const MabnAttrs& attrs, std::int32_t step) {
  const std::int64_t t = std::int64_t{step} + 1;
  const std::int64_t clip_after = attrs.clip_after > attrs.warmup ? attrs.clip_after : attrs.warmup;
  // A row of the ring whatever the step.
  return {(t % attrs.m + attrs.m) % attrs.m, t > attrs.m && t >= attrs.warmup, t > clip_after};
}

extern const OpInfo kMabn, kMabnBackward;

namespace ops {

// The mask may be absent.
struct MabnState {
  Value x2, gz, v, step, mask;
};
// Returns y; in training x2', v' and step' are outputs 3, 4 and 5, for mark_update.
Value mabn(Graph& g, Value x, const NormAffine& affine, const MabnState& state,
           const MabnAttrs& attrs);

}  // namespace ops
}  // namespace keel
