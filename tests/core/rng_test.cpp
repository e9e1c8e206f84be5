// Philox against the vectors published with Random123, and what is drawn from it.
#include "src/core/rng.h"

#include <doctest/doctest.h>

#include <set>

namespace keel::test {
namespace {

TEST_CASE("philox4x32-10: the published known answers") {
  struct Row {
    Philox4 counter;
    std::array<std::uint32_t, 2> key;
    Philox4 answer;
  };
  constexpr std::uint32_t kOnes = 0xffffffff;
  const Row rows[] = {{{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
                      {{kOnes, kOnes, kOnes, kOnes},
                       {kOnes, kOnes},
                       {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
                      {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
                       {0xa4093822, 0x299f31d0},
                       {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}}};
  for (const Row& row : rows) CHECK((philox4x32(row.counter, row.key) == row.answer));
}

TEST_CASE("philox: element e is word e % 4 of block e / 4, keyed by seed, stream and step") {
  const std::uint64_t seed = 0x299f31d0a4093822ull;
  const Philox random(seed, 0x13198a2e, 0x03707344);
  const std::uint64_t block = 0x85a308d3243f6a88ull;
  CHECK((random.block(block) == Philox4{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
  const Philox zero(0, 0);
  CHECK(zero.bits(0) == 0x6627e8d5);
  CHECK(zero.bits(3) == 0x9b00dbd8);
  CHECK(zero.bits(4) == zero.block(1)[0]);
  CHECK(zero.uniform(1) == (0xe169c58d >> 8) * 0x1p-24);
}

TEST_CASE("philox: number e of row r is word e % 4 of block (r << 32) | (e / 4)") {
  static_assert(row_block(0, 0) == 0 && row_block(0, 7) == 1);
  static_assert(row_block(5, 0) == 0x500000000ull && row_block(5, 9) == 0x500000002ull);
  static_assert(row_block(0xFFFFFFFF, kRowNumbers - 1) == ~0ull);
  const Philox random(7, 3, 1);
  for (const std::uint64_t row : {0ull, 5ull, 0xFFFFFFFFull}) {
    for (std::uint64_t e = 0; e < 9; ++e) {
      const Philox4 words = random.block(row << 32 | e / 4);
      CHECK(random.row_uniform(row, e) == (words[e % 4] >> 8) * 0x1p-24);
    }
  }
  // The numbers of rows below 2^30 can be counted as elements.
  CHECK(random.row_normal(5, 3) == random.normal((5ull << 33) + 3));
}

TEST_CASE("philox: uniform, normal and below have the moments they should") {
  constexpr int kCount = 40000;
  const Philox random(7, 3, 1);
  double sum = 0, normal = 0, squares = 0;
  std::array<int, 6> faces{};
  bool in_range = true;
  for (std::uint64_t e = 0; e < kCount; ++e) {
    const double u = random.uniform(e), z = random.normal(e);
    in_range = in_range && u >= 0 && u < 1 && u == double(float(u));
    sum += u;
    normal += z;
    squares += z * z;
    ++faces[random.below(e, 6)];
  }
  CHECK(in_range);
  // Each bound is five standard deviations of its mean.
  CHECK(std::abs(sum / kCount - 0.5) < 5 * std::sqrt(1.0 / 12 / kCount));
  CHECK(std::abs(normal / kCount) < 5 / std::sqrt(double(kCount)));
  CHECK(std::abs(squares / kCount - 1) < 5 * std::sqrt(2.0 / kCount));
  for (int face : faces) CHECK(std::abs(face - kCount / 6.0) < 5 * std::sqrt(kCount * 5.0 / 36));
}

TEST_CASE("philox: other seeds, streams and steps give other numbers") {
  std::set<std::uint32_t> drawn;
  for (const Philox& random : {Philox(1, 2, 3), Philox(4, 2, 3), Philox(1ull << 32 | 1, 2, 3),
                               Philox(1, 4, 3), Philox(1, 2, 4)}) {
    drawn.insert(random.bits(0));
  }
  CHECK(drawn.size() == 5);
}

TEST_CASE("stream_of: FNV-1a with its published values") {
  CHECK(stream_of("") == 0x811c9dc5);
  CHECK(stream_of("a") == 0xe40c292c);
  CHECK(stream_of("foobar") == 0xbf9cf968);
}

}  // namespace
}  // namespace keel::test
