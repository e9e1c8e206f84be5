// Random numbers of a batch by row (src/core/rng.h, row_block): the block of words that a thread
// draws, the elements that it is for, and normal numbers.
#pragma once

#include <cmath>

#include "backends/cuda/kernels/functions.cuh"
#include "src/ops/random_key.h"

namespace keel::cuda {

// The elements that one block of words belongs to.
struct SampledBlock {
  std::int64_t row, index;  // row of the batch; index of the block in the row
  std::int64_t first;       // element of the whole tensor
  int count;
};

// Numbers the blocks of all rows in order. A block has words for `each` elements; the last block
// of a row is partly filled.
struct SampledBlocks {
  SampledRows rows;
  int each;
  std::int64_t of_row, total;

  static SampledBlocks of(const Shape& shape, int each) {
    const SampledRows rows = sampled_rows(shape);
    const std::int64_t of_row = ceil_div(rows.width, each);
    return {rows, each, of_row, rows.rows * of_row};
  }
  __device__ SampledBlock operator[](std::int64_t i) const {
    // A 32-bit division takes a fraction of the time of a 64-bit one.
    const std::int64_t row =
        total >> 32 == 0 ? std::uint32_t(i) / std::uint32_t(of_row) : i / of_row;
    const std::int64_t index = i - row * of_row, left = rows.width - index * each;
    return {row, index, row * rows.width + index * each, left < each ? int(left) : each};
  }
};

// The words of Philox (src/core/rng.h) by products of 32 bits: nvcc turns the products in rng.h
// into those of 64 bits, which a GPU computes in several instructions.
struct DevicePhilox {
  std::uint32_t key0, key1, stream, step;

  template <class Attrs>
  __device__ DevicePhilox(const Attrs& attrs, std::int32_t step)
      : key0(std::uint32_t(attrs.seed)),
        key1(std::uint32_t(std::uint64_t(attrs.seed) >> 32)),
        stream(std::uint32_t(attrs.stream)),
        step(std::uint32_t(step)) {}

  __device__ static std::uint32_t upper(std::uint32_t a, std::uint32_t b) {
#ifdef KEEL_CUDA_EMULATED
    return std::uint32_t(std::uint64_t{a} * b >> 32);
#else
    return __umulhi(a, b);
#endif
  }
  __device__ Philox4 block(std::uint64_t index) const {
    auto a = std::uint32_t(index), b = std::uint32_t(index >> 32), c = stream, d = step;
    auto k0 = key0, k1 = key1;
    KEEL_UNROLL
    for (int round = 0; round < 10; ++round) {
      const std::uint32_t from_a = upper(0xD2511F53u, a), from_c = upper(0xCD9E8D57u, c);
      const std::uint32_t low_a = 0xD2511F53u * a, low_c = 0xCD9E8D57u * c;
      a = from_c ^ b ^ k0, b = low_c;
      c = from_a ^ d ^ k1, d = low_a;
      k0 += 0x9E3779B9u, k1 += 0xBB67AE85u;
    }
    return {a, b, c, d};
  }
};

// The words of block `index` of a row; rows count through the whole update.
__device__ inline Philox4 draw(const DevicePhilox& random, std::int32_t first_row, std::int64_t row,
                               std::int64_t index) {
  return random.block(row_block(std::uint64_t(first_row + row), 4 * std::uint64_t(index)));
}

// The cosine of v turns. CUDA's cospi needs no reduction of large arguments, for which its cos has
// a branch and local memory.
__device__ inline double cos_of_turns(double v) {
#ifdef KEEL_CUDA_EMULATED
  return cos(6.283185307179586 * v);
#else
  return cospi(2 * v);
#endif
}

// Philox::uniform: the upper 24 bits times 2^-24, exact.
__device__ inline float uniform(std::uint32_t word) { return float(word >> 8) * 0x1p-24f; }

// The same in float, of instructions that round as IEEE says: an absolute error of 2^-23.
// backends/onednn/simd/philox-inl.h tells of the series.
__device__ inline float short_cos_of_turns(float v) {
  // A number as large as this has no bits after the point, so that adding it rounds.
  constexpr float kRounder = 0x1.8p23f;
  const float rounded = fmaf(v, 4.0f, kRounder), rest = fmaf(rounded - kRounder, -0.25f, v);
  const auto quarter = std::bit_cast<std::uint32_t>(rounded);  // the last two bits are of use
  const float a = rest * 6.28318531f, square = a * a;
  const float cosine = polynomial(square, 1.0f, -1.0f / 2, 1.0f / 24, -1.0f / 720, 1.0f / 40320);
  const float sine =
      a * polynomial(square, 1.0f, -1.0f / 6, 1.0f / 120, -1.0f / 5040, 1.0f / 362880);
  const float value = quarter & 1 ? sine : cosine;
  return (quarter + 1) & 2 ? -value : value;
}

// The same in float, within what src/ops/random_normal.h allows; 1 - u is exact.
__device__ inline float short_normal(std::uint32_t first, std::uint32_t second) {
  const float log_u = log_of_normal(1 - uniform(first));
  return sqrtf(-2 * log_u) * short_cos_of_turns(uniform(second));
}

// Philox::normal from two words.
__device__ inline double normal(std::uint32_t first, std::uint32_t second) {
  const double u = (first >> 8) * 0x1p-24, v = (second >> 8) * 0x1p-24;
  return sqrt(-2.0 * log1p(-u)) * cos_of_turns(v);
}

}  // namespace keel::cuda
