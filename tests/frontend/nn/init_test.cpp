// Initial values: their moments and bounds, and that they depend only on seed and name.
#include "frontend/nn/init.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "frontend/nn/orthogonal.h"
#include "tests/support/checks.h"

namespace keel::nn {
namespace {

constexpr std::int64_t kMany = 40000;

Tensor draw(const Initializer& initializer, std::int64_t n = kMany, std::uint64_t seed = 3,
            std::string_view name = "fc1/weight") {
  Tensor value(DType::kF32, {n});
  initializer(value, Philox(seed, stream_of(name)));
  return value;
}

struct Moments {
  double mean = 0, deviation = 0, largest = 0, kurtosis = 0;
};

Moments moments(const Tensor& value) {
  Moments m;
  const auto n = double(value.elements());
  for (float x : value.as<float>()) m.mean += x / n;
  double second = 0, fourth = 0;
  for (float x : value.as<float>()) {
    const double d = x - m.mean;
    second += d * d / n;
    fourth += d * d * d * d / n;
    m.largest = std::max(m.largest, double(std::abs(x)));
  }
  m.deviation = std::sqrt(second);
  m.kurtosis = fourth / (second * second);
  return m;
}

bool same(std::span<const float> a, std::span<const float> b) { return std::ranges::equal(a, b); }

TEST_CASE("init: normal values have the deviation that is asked for") {
  const struct {
    Initializer initializer;
    double deviation;
  } rows[] = {{normal(0.02), 0.02}, {lecun_normal(64), 0.125}, {kaiming_normal(50), 0.2}};
  for (const auto& row : rows) {
    CAPTURE(row.deviation);
    const Moments m = moments(draw(row.initializer));
    // Five standard errors of each estimate.
    CHECK(std::abs(m.mean) < 5 * row.deviation / std::sqrt(double(kMany)));
    CHECK(std::abs(m.deviation / row.deviation - 1) < 5 / std::sqrt(2.0 * kMany));
    CHECK(std::abs(m.kurtosis - 3) < 5 * std::sqrt(24.0 / kMany));
    CHECK(m.largest > 3.5 * row.deviation);
  }
}

TEST_CASE("init: normal values around a mean are those around 0, moved") {
  const Tensor around = draw(normal(0.02, 1)), plain = draw(normal(0.02));
  for (std::int64_t i = 0; i < kMany; ++i) REQUIRE(around.at(i) == double(float(1 + plain.at(i))));
}

TEST_CASE("init: uniform values fill their interval") {
  const struct {
    Initializer initializer;
    double bound;
  } rows[] = {{uniform(0.3), 0.3},
              {fan_in_uniform(25), 0.2},
              {xavier_uniform(10, 14), 0.5},
              {xavier_uniform(10, 14, 2), 1}};
  for (const auto& row : rows) {
    CAPTURE(row.bound);
    const Moments m = moments(draw(row.initializer));
    CHECK(std::abs(m.mean) < 5 * row.bound / std::sqrt(3.0 * kMany));
    CHECK(std::abs(m.deviation / (row.bound / std::sqrt(3)) - 1) < 0.02);
    CHECK(m.largest <= float(row.bound));
    CHECK(m.largest > 0.999 * row.bound);
  }
}

Tensor draw_matrix(const Initializer& initializer, const Shape& shape, DType dtype = DType::kF32) {
  Tensor value(dtype, shape);
  initializer(value, Philox(3, stream_of("u")));
  return value;
}

// Orthonormal up to the rounding to float of each element x: two vectors of length `gain` whose
// elements are off by 2^-24 |x| have a product off by 2 * 2^-24 gain^2 at most.
void check_orthonormal(const Tensor& value, double gain, std::int64_t blocks) {
  const std::int64_t rows = value.shape()[0], cols = value.shape()[1], width = cols / blocks;
  const bool is_wide = rows <= width;
  const std::int64_t count = is_wide ? rows : width, length = is_wide ? width : rows;
  for (std::int64_t first = 0; first < cols; first += width) {
    const auto at = [&](std::int64_t vector, std::int64_t e) {
      return is_wide ? value.at(vector * cols + first + e) : value.at(e * cols + first + vector);
    };
    for (std::int64_t i = 0; i < count; ++i) {
      for (std::int64_t j = 0; j <= i; ++j) {
        double product = 0;
        for (std::int64_t e = 0; e < length; ++e) product += at(i, e) * at(j, e);
        CHECK(std::abs(product - (i == j ? gain * gain : 0)) <= 2.01 * 0x1p-24 * gain * gain);
      }
    }
  }
}

TEST_CASE("init: orthogonal matrices, wide, tall and of blocks") {
  for (const Shape& shape : {Shape{1, 1}, Shape{5, 5}, Shape{3, 8}, Shape{9, 4}, Shape{70, 70},
                             Shape{40, 101}, Shape{101, 40}}) {
    CAPTURE(shape.text());
    check_orthonormal(draw_matrix(orthogonal(), shape), 1, 1);
    check_orthonormal(draw_matrix(orthogonal(0.05), shape), 0.05, 1);
  }
  for (const Shape& shape : {Shape{6, 24}, Shape{9, 24}, Shape{3, 24}}) {
    CAPTURE(shape.text());
    check_orthonormal(draw_matrix(orthogonal(2, 4), shape), 2, 4);
  }
}

TEST_CASE("init: orthogonal matrices follow the normal numbers that they come from") {
  // The first row keeps its direction, so that any direction is as likely as another.
  const Tensor drawn = draw_matrix(normal(1), {4, 6}), q = draw_matrix(orthogonal(), {4, 6});
  double norm = 0;
  for (std::int64_t e = 0; e < 6; ++e) norm += drawn.at(e) * drawn.at(e);
  for (std::int64_t e = 0; e < 6; ++e) {
    CHECK(q.at(e) == doctest::Approx(drawn.at(e) / std::sqrt(norm)).epsilon(1e-6));
  }
  // Every row has a positive part of its own.
  for (std::int64_t i = 0; i < 4; ++i) {
    double own = 0;
    for (std::int64_t e = 0; e < 6; ++e) own += q.at(6 * i + e) * drawn.at(6 * i + e);
    CHECK(own > 0);
  }
  const Tensor blocks = draw_matrix(orthogonal(1, 2), {3, 6});
  CHECK(blocks.at(0) != blocks.at(3));
  const Tensor wide = draw_matrix(orthogonal(), {4, 6}, DType::kF64);
  for (std::int64_t e = 0; e < 24; ++e) CHECK(wide.at(e) == q.at(e));
}

// Rows that are nearly one: a single run would leave the second far from the first's right angle.
TEST_CASE("init: rows that hardly differ become orthonormal") {
  RowMatrix m{2, 3, {1, 1, 1, 1, 1, 1 + 1e-9}};
  orthonormalize(m);
  double product = 0, norm = 0;
  for (std::size_t e = 0; e < 3; ++e) {
    product += m.row(0)[e] * m.row(1)[e];
    norm += m.row(1)[e] * m.row(1)[e];
  }
  CHECK(std::abs(product) <= 4 * 0x1p-52);
  CHECK(std::abs(norm - 1) <= 4 * 0x1p-52);
}

TEST_CASE("init: orthogonal refuses other ranks, and columns that cannot be cut") {
  test::check_refused([] { draw(orthogonal(), 4); },
                      "orthogonal: expected (rows, columns) with columns a multiple of 1, got (4)");
  test::check_refused(
      [] {
        draw_matrix(orthogonal(1, 4), {3, 6});
      },
      "orthogonal: expected (rows, columns) with columns a multiple of 4");
}

TEST_CASE("init: constants") {
  const Tensor one = draw(ones(), 7), zero = draw(zeros(), 7), other = draw(constant(-2.5), 7);
  for (std::int64_t e = 0; e < 7; ++e) {
    CHECK(one.at(e) == 1);
    CHECK(zero.at(e) == 0);
    CHECK(other.at(e) == -2.5);
  }
}

TEST_CASE("init: the same for the same seed and name, else different") {
  for (const Initializer& initializer : {normal(1), uniform(1)}) {
    const Tensor first = draw(initializer, 9);
    CHECK(same(first.as<float>(), draw(initializer, 9).as<float>()));
    CHECK_FALSE(same(first.as<float>(), draw(initializer, 9, 4).as<float>()));
    CHECK_FALSE(same(first.as<float>(), draw(initializer, 9, 3, "fc2/weight").as<float>()));
  }
}

TEST_CASE("init: a longer tensor begins like a shorter one") {
  for (const Initializer& initializer : {normal(1), uniform(1), constant(3)}) {
    const Tensor longer = draw(initializer, 23);
    for (std::int64_t n : {1, 2, 3, 4, 5, 22}) {
      CAPTURE(n);
      CHECK(same(draw(initializer, n).as<float>(), longer.as<float>().first(std::size_t(n))));
    }
  }
}

TEST_CASE("init: other element types hold the f32 values that are drawn") {
  const Tensor drawn = draw(normal(1), 11);
  Tensor wide(DType::kF64, {11});
  normal(1)(wide, Philox(3, stream_of("fc1/weight")));
  for (std::int64_t e = 0; e < 11; ++e) CHECK(wide.at(e) == drawn.at(e));
}

TEST_CASE("init: a constant has the precision of its element type") {
  Tensor wide(DType::kF64, {5}), single(DType::kF32, {5});
  constant(0.1)(wide, Philox(3, 1));
  constant(0.1)(single, Philox(3, 1));
  for (std::int64_t e = 0; e < 5; ++e) {
    CHECK(wide.at(e) == 0.1);
    CHECK(single.at(e) == 0.1f);
  }
}

}  // namespace
}  // namespace keel::nn
