// Self-rescaled dynamic normalization, SeeDNorm (Cai et al. 2025), over the last `axes` axes:
//     y = xhat * w,   w = tanh(score) * a + gain,   score = sum(x * b)
//     xhat = x * rstd,   rstd = 1 / sqrt(mean(x^2) + eps)
// The score is one number of a row, by which the gain depends on x. Without a gain it is 1. The
// authors start a at 1, b at 0 and the gain at 1.
//   x (..., width) floating; width is the product of the last `axes` sizes, rows that of the others
//   gain, a, b: the shape of the last `axes` axes; only gain may be absent
//   outputs: y like x;  rstd, score (rows)
// backward (Exact), seed_norm_backward (x, gain, a, b, rstd, score, dy), with g = dy * w:
//     dscore = (1 - tanh(score)^2) * sum(dy * a * xhat)
//     dx = rstd * (g - xhat * mean(g * xhat)) + dscore * b
//     dgain = sum over rows of dy * xhat;   da = sum over rows of tanh(score) * dy * xhat
//     db = sum over rows of dscore * x
//   outputs: dx like x;  dgain, da, db like their inputs, dgain (0) when absent
// errors: rank below `axes`; width 0; gain, a or b of another shape; no a or b; eps < 0.
// in place: dx over dy. y is not written over x, which the backward reads.
#pragma once

#include "src/ops/norm/norm.h"

namespace keel {

struct SeedNormInput {
  enum Place : int { kX, kGain, kA, kB };
};
struct SeedNormOutput {
  enum Place : int { kY, kRstd, kScore };
};
struct SeedNormBackwardInput {
  enum Place : int { kX, kGain, kA, kB, kRstd, kScore, kDy };
};
struct SeedNormGradient {
  enum Place : int { kDx, kDgain, kDa, kDb };
};

struct SeedNormAttrs {
  std::int64_t axes = 1;
  double eps = 1e-6;
  static constexpr auto fields() {
    return std::tuple{field("axes", &SeedNormAttrs::axes), field("eps", &SeedNormAttrs::eps)};
  }
};

extern const OpInfo kSeedNorm, kSeedNormBackward;

namespace ops {

// The parameters; the gain may be absent.
struct SeedParameters {
  Value gain, a, b;
};

// Returns y.
Value seed_norm(Graph& g, Value x, const SeedParameters& of, const SeedNormAttrs& attrs = {});

}  // namespace ops
}  // namespace keel
