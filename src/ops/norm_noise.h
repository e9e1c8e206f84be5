// The noise of Santurkar et al. 2018 (algorithm 1) behind a batch normalization: every feature j of
// every sample i is scaled and moved at random, by amounts whose means differ from unit to unit,
//     y = S_ij * x + M_ij,   S_ij ~ N(v_j, r_std^2),   M_ij ~ U(m_j - r_mean, m_j + r_mean)
//     v_j ~ U(1, n_std),     m_j ~ U(-n_mean, n_mean),  all drawn anew every step.
//
//   x (rows, channels) tokens, or (n, channels, h, w) images, one S and M for all h * w elements
//   step () i32;  mask u8 (rows) or absent, tokens only: rows with 0 pass as they are
//   y like x
// With Philox(seed, stream, step), block b being the numbers 4 b to 4 b + 3: block 2^61 + j gives
// m_j (number 0) and v_j (number 1); block i * channels + j gives M_ij (number 0) and S_ij (normal
// by numbers 2 and 3). The backward draws them again.
// backward (Exact for the drawn noise): dx = S * dy, or dy of rows left out.
// errors: rank neither 2 nor 4; a width below 0; a mask for images.
// in place: y over x, dx over dy.
#pragma once

#include "src/core/rng.h"
#include "src/graph/graph.h"

namespace keel {

struct NormNoiseAttrs {
  double n_mean = 0.5, n_std = 1.25, r_mean = 0.1, r_std = 0.1;
  std::int64_t seed = 0, stream = 0;
  static constexpr auto fields() {
    using A = NormNoiseAttrs;
    return std::tuple{field("n_mean", &A::n_mean), field("n_std", &A::n_std),
                      field("r_mean", &A::r_mean), field("r_std", &A::r_std),
                      field("seed", &A::seed),     field("stream", &A::stream)};
  }
  constexpr Philox random(std::int32_t step) const {
    return {static_cast<std::uint64_t>(seed), static_cast<std::uint32_t>(stream),
            static_cast<std::uint32_t>(step)};
  }
};

// The means of the noise of channel j.
struct UnitNoise {
  double m, v;
};
constexpr UnitNoise unit_noise(const NormNoiseAttrs& attrs, const Philox& random, std::int64_t j) {
  const std::uint64_t first = (std::uint64_t{1} << 63) + 4 * static_cast<std::uint64_t>(j);
  return {attrs.n_mean * (2 * random.uniform(first) - 1),
          1 + (attrs.n_std - 1) * random.uniform(first + 1)};
}

extern const OpInfo kNormNoise;
extern const OpInfo kNormNoiseBackward;  // (dy, step, mask or absent) -> dx

namespace ops {

// The stream is the hash of the node's name; attrs.stream is not looked at.
struct NoiseInputs {
  Value step, mask;  // the mask may be absent
};
Value norm_noise(Graph& g, Value x, const NoiseInputs& inputs, NormNoiseAttrs attrs);

}  // namespace ops
}  // namespace keel
