// Standard normal numbers: the contract of src/ops/random_normal.h, and their moments.
#include "src/ops/random_normal.h"

#include <doctest/doctest.h>

#include <cmath>
#include <numbers>

#include "src/ops/elementwise.h"
#include "tests/support/checks.h"

namespace keel::test {
namespace {

OpCase case_of(const RandomNormalAttrs& attrs, std::int32_t step = 3, std::int32_t first_row = 0) {
  OpCase c;
  c.inputs.push_back(i32({}, {step}));
  c.inputs.push_back(i32({}, {first_row}));
  c.gradients = false;
  c.build = [attrs](Graph& g, const std::vector<Value>& v) {
    return std::vector{g.add(kRandomNormal, v, attrs)};
  };
  return c;
}

Tensor sampled(const OpCase& c) { return run_reference(c).at("y0").clone(); }

TEST_CASE("random_normal: Box-Muller of words 2e and 2e + 1 of the row") {
  for (const Shape& shape : {Shape{}, Shape{5}, Shape{4, 7}, Shape{2, 3, 5}}) {
    CAPTURE(shape.text());
    const Tensor y = sampled(case_of({shape, DType::kF32, -1, 7}, 9, 48));
    const std::int64_t width = shape.rank() < 2 ? 1 : shape.elements() / shape[0];
    const Philox random(~0ull, 7, 9);
    for (std::int64_t i = 0; i < shape.elements(); ++i) {
      const std::uint64_t row = 48 + std::uint64_t(i / width), e = std::uint64_t(i % width);
      const Philox4 words = random.block(row << 32 | e / 2);
      const double u = (words[2 * (e % 2)] >> 8) * 0x1p-24;
      const double v = (words[2 * (e % 2) + 1] >> 8) * 0x1p-24;
      const double expected = std::sqrt(-2 * std::log1p(-u)) * std::cos(2 * std::numbers::pi * v);
      CHECK(y.at(i) == doctest::Approx(expected).epsilon(1e-12));
    }
  }
}

// Each moment within five standard deviations of its mean over n independent normal numbers.
TEST_CASE("random_normal: moments, and no correlation of neighbours") {
  constexpr double kRows = 200, kWidth = 501, kCount = kRows * kWidth;
  const Tensor y = sampled(case_of({{200, 501}, DType::kF32, 5, 6}));
  double sums[5] = {}, along = 0, across = 0;
  for (std::int64_t i = 0; i < y.elements(); ++i) {
    double power = 1;
    for (double& sum : sums) sum += power, power *= y.at(i);
    along += i + 1 < y.elements() ? y.at(i) * y.at(i + 1) : 0;
    across += i + 501 < y.elements() ? y.at(i) * y.at(i + 501) : 0;
  }
  const double root = std::sqrt(kCount);
  CHECK(std::abs(sums[1]) / root < 5);                                 // variance 1
  CHECK(std::abs(sums[2] - kCount) / root < 5 * std::sqrt(2.0));       // 3 - 1
  CHECK(std::abs(sums[3]) / root < 5 * std::sqrt(15.0));               // 15
  CHECK(std::abs(sums[4] - 3 * kCount) / root < 5 * std::sqrt(96.0));  // 105 - 9
  CHECK(std::abs(along) / root < 5);
  CHECK(std::abs(across) / root < 5);
}

TEST_CASE("random_normal: another update, seed, stream or row draws anew") {
  const Tensor base = sampled(case_of({{3, 4}, DType::kF32, 1, 1}, 0));
  for (const Tensor& other : {sampled(case_of({{3, 4}, DType::kF32, 1, 1}, 1)),
                              sampled(case_of({{3, 4}, DType::kF32, 2, 1}, 0)),
                              sampled(case_of({{3, 4}, DType::kF32, 1, 2}, 0)),
                              sampled(case_of({{3, 4}, DType::kF32, 1, 1}, 0, 3))}) {
    for (std::int64_t e = 0; e < 12; ++e) CHECK(other.at(e) != base.at(e));
  }
}

TEST_CASE("random_normal: nothing flows back, and what it is added to has its gradient") {
  OpCase c;
  c.inputs.push_back(f64({2}, {1, 2}));
  c.inputs.push_back(i32({}, {3}));
  c.build = [](Graph& g, const std::vector<Value>& v) {
    const Value noise = ops::random_normal(g, g.type(v[0]), {v[1], v[1]}, 1);
    CHECK(g.node(noise).attrs.as<RandomNormalAttrs>().stream == stream_of("random_normal"));
    return std::vector{ops::add(g, v[0], noise)};
  };
  check_close(run_reference(c).at("d0"), random_normal({2}, 900), 0);
}

TEST_CASE("random_normal: refusals") {
  const auto refused = [](const std::vector<TensorType>& inputs, const TensorType& y,
                          std::string_view part) {
    check_op_refused(
        inputs,
        [y](Graph& g, const std::vector<Value>& v) {
          return std::vector{ops::random_normal(g, y, {v[0], v[1]}, 1)};
        },
        "random_normal", part);
  };
  const TensorType y{DType::kF32, {4}}, i{DType::kI32, {}}, list{DType::kI32, {1}};
  refused({y, i}, y, "step: expected i32, got f32");
  refused({i, list}, y, "first_row: expected (), got (1)");
  refused({i, i}, i, "y: expected f32 or f64, got i32");
  refused({i, i}, {DType::kBF16, {4}}, "y: expected f32 or f64, got bf16");
  refused({i, i}, {DType::kF32, {1, 1ll << 33}},
          "x: expected fewer than 8589934592 elements a row, got 8589934592");
}

}  // namespace
}  // namespace keel::test
