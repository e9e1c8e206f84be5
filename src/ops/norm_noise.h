// The noise of Santurkar et al. 2018 (algorithm 1) after a batch normalization. Every feature j of
// every sample i is scaled and shifted at random, with means that differ from unit to unit,
//     y = S_ij * x + M_ij,   S_ij ~ N(v_j, r_std^2),   M_ij ~ U(m_j - r_mean, m_j + r_mean)
//     v_j ~ U(1, n_std),     m_j ~ U(-n_mean, n_mean),  all sampled again every update.
//
//   x (rows, channels) tokens, or (n, channels, h, w) images, one S and M for all h * w elements
//   step, first_row () i32, see RandomKey
//   mask u8 (rows) or absent, tokens only: rows with 0 pass as they are
//   y like x
// `positions` consecutive tokens are one row of the batch, so that sample i is position
// t = i % positions of the batch's row first_row + i / positions. It takes four numbers of that row
// of Philox(seed, stream, step), from k = 4 (t * channels + j) on: M_ij by number k, S_ij by the
// normal one of numbers k + 2 and k + 3. Numbers 4 j and 4 j + 1 of row 2^32 - 1, which no batch
// has, give m_j and v_j. The backward draws them again.
// backward (Exact for the sampled noise): dx = S * dy, or dy of rows left out.
// errors: rank neither 2 nor 4; a width below 0; a mask for images; positions that do not divide
// the tokens, or not 1 for images; 2^32 or more positions * channels.
// in place: y over x, dx over dy.
#pragma once

#include "src/ops/random_key.h"

namespace keel {

struct NormNoiseAttrs {
  double n_mean = 0.5, n_std = 1.25, r_mean = 0.1, r_std = 0.1;
  std::int64_t seed = 0, stream = 0;
  std::int64_t positions = 1;  // tokens in one row of the batch
  static constexpr auto fields() {
    using A = NormNoiseAttrs;
    return std::tuple{field("n_mean", &A::n_mean),      field("n_std", &A::n_std),
                      field("r_mean", &A::r_mean),      field("r_std", &A::r_std),
                      field("seed", &A::seed),          field("stream", &A::stream),
                      field("positions", &A::positions)};
  }
};

// The inputs of both ops have these places; the backward has dy for x.
struct NormNoiseInput {
  enum Place : int { kX, kStep, kFirstRow, kMask };
};

// Where the random numbers of channel 0 of sample i begin: the row of the update and the number.
struct SamplePlace {
  std::uint64_t row, first;
};
constexpr SamplePlace sample_place(std::int64_t i, std::int64_t positions, std::int64_t channels,
                                   std::int32_t first_row) {
  const std::int64_t row = positions == 1 ? i : i / positions;  // division is slow on a device
  return {static_cast<std::uint64_t>(first_row + row),
          4 * static_cast<std::uint64_t>((i - row * positions) * channels)};
}

// The means of the noise of channel j.
struct UnitNoise {
  double m, v;
};
constexpr UnitNoise unit_noise(const NormNoiseAttrs& attrs, const Philox& random, std::int64_t j) {
  constexpr std::uint64_t kRow = 0xFFFFFFFF;
  const std::uint64_t first = 4 * static_cast<std::uint64_t>(j);
  return {attrs.n_mean * (2 * random.row_uniform(kRow, first) - 1),
          1 + (attrs.n_std - 1) * random.row_uniform(kRow, first + 1)};
}

extern const OpInfo kNormNoise;
extern const OpInfo kNormNoiseBackward;  // (dy, step, first_row, mask or absent) -> dx

namespace ops {

struct NoiseOperands {
  RandomKey key;
  Value mask = {};  // may be absent
};
// The stream is the hash of the node's name; attrs.stream is ignored.
Value norm_noise(Graph& g, Value x, const NoiseOperands& operands, NormNoiseAttrs attrs);

}  // namespace ops
}  // namespace keel
