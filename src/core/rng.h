// Philox4x32-10, a counter-based random generator (Salmon et al. 2011, "Parallel random numbers: as
// easy as 1, 2, 3"). Every number is a pure function of (seed, step, stream, element), hence the
// same on every backend and for every thread count. Numbers of a batch count their elements by row
// (row_block), hence they are also the same for every way to split the batch.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <string_view>

namespace keel {

using Philox4 = std::array<std::uint32_t, 4>;

// Ten rounds over a 128-bit counter with a 64-bit key.
constexpr Philox4 philox4x32(Philox4 counter, std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = std::uint64_t{0xD2511F53u} * counter[0];
    const std::uint64_t p1 = std::uint64_t{0xCD9E8D57u} * counter[2];
    counter = {
        static_cast<std::uint32_t>(p1 >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(p1),
        static_cast<std::uint32_t>(p0 >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(p0)};
    key = {key[0] + 0x9E3779B9u, key[1] + 0xBB67AE85u};
  }
  return counter;
}

// How the random numbers of a batch are counted. Number `element` of row `row` is word element % 4
// of this block. Rows count through the whole update, in whatever micro-batches it comes. The
// number does not depend on other rows, nor on later elements of its own row, so padding at a row's
// end changes nothing before it. row < 2^32, element < kRowNumbers.
inline constexpr std::int64_t kRowNumbers = std::int64_t{1} << 34;
constexpr std::uint64_t row_block(std::uint64_t row, std::uint64_t element) {
  return row << 32 | element / 4;
}

// One random stream. `stream` names the consumer (a node, a parameter, a data set), `step` the
// training step; element e takes word e % 4 of block e / 4.
class Philox {
 public:
  constexpr Philox(std::uint64_t seed, std::uint32_t stream, std::uint32_t step = 0)
      : key_{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)},
        stream_(stream),
        step_(step) {}

  constexpr Philox4 block(std::uint64_t index) const {
    return philox4x32({static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32),
                       stream_, step_},
                      key_);
  }

  // 32 uniform bits of one element.
  constexpr std::uint32_t bits(std::uint64_t element) const {
    return block(element / 4)[element % 4];
  }

  // Uniform in [0, 1), a multiple of 2^-24, hence exact in f32.
  constexpr double uniform(std::uint64_t element) const { return uniform_of(bits(element)); }

  // Standard normal by Box-Muller from words 2e and 2e + 1, computed in double.
  double normal(std::uint64_t element) const {
    return normal_of(uniform(2 * element), uniform(2 * element + 1));
  }

  // The same numbers for a row of a batch (see row_block); a normal number takes two words.
  constexpr double row_uniform(std::uint64_t row, std::uint64_t element) const {
    return uniform_of(block(row_block(row, element))[element % 4]);
  }
  double row_normal(std::uint64_t row, std::uint64_t element) const {
    return normal_of(row_uniform(row, 2 * element), row_uniform(row, 2 * element + 1));
  }

  // Uniform integer in [0, n); the bias is below n / 2^32.
  constexpr std::uint32_t below(std::uint64_t element, std::uint32_t n) const {
    return static_cast<std::uint32_t>((std::uint64_t{bits(element)} * n) >> 32);
  }

 private:
  static constexpr double uniform_of(std::uint32_t bits) { return (bits >> 8) * 0x1p-24; }
  static double normal_of(double u, double v) {
    return std::sqrt(-2.0 * std::log1p(-u)) * std::cos(6.283185307179586 * v);
  }

  std::array<std::uint32_t, 2> key_;
  std::uint32_t stream_, step_;
};

// A stable 32-bit name for a random stream: FNV-1a of its text.
constexpr std::uint32_t stream_of(std::string_view text) {
  std::uint32_t hash = 2166136261u;
  for (char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
  return hash;
}

}  // namespace keel
