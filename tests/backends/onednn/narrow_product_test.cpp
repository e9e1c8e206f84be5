// Products of bf16 in each way that this processor has, against sums in double.
#include "backends/onednn/narrow_product.h"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "backends/onednn/instruction_set.h"
#include "tests/backends/kernel_checks.h"

namespace keel::test {
namespace {

using onednn::MultiplyNarrow;
using onednn::NarrowProduct;
using onednn::Pair;

std::vector<MultiplyNarrow> ways_here() {
  std::vector<MultiplyNarrow> ways{onednn::multiply_widened};
  if (onednn::has_bf16_instructions()) ways.push_back(onednn::multiply_by_pairs);
  const bool has_tiles = onednn::has_tile_instructions() && onednn::kMultiplyByTiles != nullptr;
  if (has_tiles) ways.push_back(onednn::kMultiplyByTiles);
  return ways;
}

// Factors whose rows are further apart than they are long; what lies between them is NaN.
struct Factors {
  static constexpr std::size_t kGap = 3;
  std::size_t rows, terms, columns;
  std::vector<BF16> a;
  std::vector<Pair> b;
  std::vector<float> c;

  Factors(std::size_t m, std::size_t k, std::size_t n) : rows(m), terms(k), columns(n) {
    const BF16 nan(std::numeric_limits<float>::quiet_NaN());
    a.assign(m * a_row(), nan);
    b.assign(onednn::pairs_of(k) * b_row(), Pair{nan.bits()} * 0x10001u);
    c.assign(m * c_row(), 0.5f);
    const auto sampled = [](std::int64_t i, double scale) {
      return BF16(std::sin(double(i) * 12.9898) * scale);
    };
    for (std::size_t i = 0; i < m; ++i) {
      for (std::size_t t = 0; t < k; ++t) a[i * a_row() + t] = sampled(std::int64_t(i * k + t), 2);
    }
    for (std::size_t t = 0; t < k; t += 2) {
      for (std::size_t j = 0; j < n; ++j) {
        const Pair low = sampled(std::int64_t(t * n + j), 3).bits();
        const Pair high = t + 1 < k ? sampled(std::int64_t((t + 1) * n + j), 3).bits() : 0;
        b[t / 2 * b_row() + j] = low | high << 16;
      }
    }
  }
  std::size_t a_row() const { return terms + kGap; }
  std::size_t b_row() const { return columns + kGap; }
  std::size_t c_row() const { return columns + kGap; }

  double a_at(std::size_t i, std::size_t t) const { return double(float(a[i * a_row() + t])); }
  double b_at(std::size_t t, std::size_t j) const {
    const Pair pair = b[t / 2 * b_row() + j];
    return double(std::bit_cast<float>(t % 2 == 0 ? pair << 16 : pair & 0xffff0000u));
  }
  std::vector<float> product(MultiplyNarrow multiply, bool adds) const {
    std::vector<float> result = c;
    multiply(
        {rows, terms, columns, a.data(), a_row(), b.data(), b_row(), result.data(), c_row(), adds});
    return result;
  }
};

// Whether element (i, j) of the rows of c is right; what lies between rows stays as it was.
bool is_right(const Factors& of, std::size_t i, std::size_t j, float value, bool adds) {
  if (j >= of.columns) return value == 0.5f;
  double sum = adds ? 0.5 : 0, sizes = sum;
  for (std::size_t t = 0; t < of.terms; ++t) {
    sum += of.a_at(i, t) * of.b_at(t, j);
    sizes += std::abs(of.a_at(i, t) * of.b_at(t, j));
  }
  return std::abs(double(value) - sum) <= double(of.terms + 2) * 0x1p-24 * sizes;
}

void check_product(const Factors& of, MultiplyNarrow multiply, bool adds) {
  const std::vector<float> got = of.product(multiply, adds);
  int wrong = 0;
  for (std::size_t i = 0; i < of.rows; ++i) {
    for (std::size_t j = 0; j < of.c_row(); ++j) {
      if (!is_right(of, i, j, got[i * of.c_row() + j], adds)) ++wrong;
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("onednn bf16 products: every remainder of rows, terms and columns") {
  const std::size_t sizes[] = {1, 2, 16, 17, 32, 33, 70};
  for_each_target([&] {
    for (const MultiplyNarrow multiply : ways_here()) {
      for (const std::size_t m : sizes) {
        for (const std::size_t k : sizes) {
          for (const std::size_t n : sizes) {
            CAPTURE(m);
            CAPTURE(k);
            CAPTURE(n);
            const Factors of(m, k, n);
            check_product(of, multiply, false);
            check_product(of, multiply, true);
          }
        }
      }
    }
  });
}

TEST_CASE("onednn bf16 products: the bits of an element depend on its own factors alone") {
  for (const MultiplyNarrow multiply : ways_here()) {
    const Factors of(40, 77, 50);
    const std::vector<float> all = of.product(multiply, false);
    for (const std::size_t first : {0, 5, 33}) {
      Factors part = of;
      multiply({of.rows - first, of.terms, of.columns - first, part.a.data() + first * of.a_row(),
                of.a_row(), part.b.data() + first, of.b_row(), part.c.data(), of.c_row(), false});
      for (std::size_t i = first; i < of.rows; ++i) {
        const std::size_t bytes = (of.columns - first) * sizeof(float);
        CHECK(std::memcmp(&part.c[(i - first) * of.c_row()], &all[i * of.c_row() + first], bytes) ==
              0);
      }
    }
  }
}

}  // namespace
}  // namespace keel::test
