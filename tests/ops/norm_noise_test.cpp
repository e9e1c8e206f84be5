// The noise after a batch norm: the contract of src/ops/norm_noise.h, and its moments.
#include "src/ops/norm_noise.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "tests/support/checks.h"
#include "tests/support/gradcheck.h"

namespace keel::test {
namespace {

struct Key {
  std::int32_t step = 3, first_row = 0;
};

OpCase case_of(const Shape& shape, const NormNoiseAttrs& attrs, Key key = {},
               std::vector<std::uint8_t> mask = {}) {
  OpCase c;
  c.inputs.push_back(random_normal(shape, 1));
  c.inputs.push_back(i32({}, {key.step}));
  c.inputs.push_back(i32({}, {key.first_row}));
  if (!mask.empty()) c.inputs.push_back(Tensor::of<std::uint8_t>({std::ssize(mask)}, mask));
  c.build = [attrs](Graph& g, const std::vector<Value>& v) {
    const Value row_mask = v.size() > 3 ? v[3] : Value{};
    return std::vector{g.add(kNormNoise, {v[0], v[1], v[2], row_mask}, attrs)};
  };
  return c;
}

// y = S x + M by the words of the contract.
struct Sampled {
  double s, m;
};
Sampled sampled(const NormNoiseAttrs& a, const Philox& random, std::uint64_t j,
                const Philox4& own) {
  const auto uniform = [](std::uint32_t word) { return (word >> 8) * 0x1p-24; };
  const auto around = [&](double centre, double width, std::uint32_t word) {
    return centre - width + 2 * width * uniform(word);
  };
  const Philox4 unit = random.block(0xFFFFFFFFull << 32 | j);
  const double normal = std::sqrt(-2 * std::log1p(-uniform(own[2]))) *
                        std::cos(2 * std::numbers::pi * uniform(own[3]));
  return {1 + (a.n_std - 1) * uniform(unit[1]) + a.r_std * normal,
          around(around(0, a.n_mean, unit[0]), a.r_mean, own[0])};
}

void check_contract(const OpCase& c, const NormNoiseAttrs& attrs) {
  const Shape& shape = c.inputs[0].shape();
  const std::int64_t channels = shape[1], inner = shape.elements(2, shape.rank());
  const Results results = run_reference(c);
  const Tensor weights = random_normal(shape, 900);  // what run_case differentiates
  const Philox random(std::uint64_t(attrs.seed), std::uint32_t(attrs.stream),
                      std::uint32_t(c.inputs[1].at(0)));
  for (std::int64_t e = 0; e < shape.elements(); ++e) {
    CAPTURE(e);
    const std::int64_t i = e / inner / channels, j = e / inner % channels;
    const std::uint64_t row = std::uint64_t(c.inputs[2].at(0)) + std::uint64_t(i / attrs.positions);
    const std::uint64_t block = std::uint64_t(i % attrs.positions * channels + j);
    const bool is_kept = c.inputs.size() < 4 || c.inputs[3].at(i) != 0;
    const auto [s, m] =
        is_kept ? sampled(attrs, random, std::uint64_t(j), random.block(row << 32 | block))
                : Sampled{1, 0};
    CHECK(results.at("y0").at(e) == doctest::Approx(s * c.inputs[0].at(e) + m).epsilon(1e-12));
    CHECK(results.at("d0").at(e) == doctest::Approx(s * weights.at(e)).epsilon(1e-12));
  }
}

TEST_CASE("norm_noise: y = S x + M, sampled by the words of the contract") {
  const NormNoiseAttrs rows[] = {{.seed = 1, .stream = 2},
                                 {2, 3, 0.5, 0.25, -1, 0xFFFFFFFFll},
                                 {0, 1, 0, 0, 0x123456789ll, 7}};
  for (const NormNoiseAttrs& attrs : rows) {
    for (const Key key : {Key{0, 0}, Key{1, 48}, Key{1000000, 0x7FFFFFFF}}) {
      check_contract(case_of({4, 3}, attrs, key), attrs);
      check_contract(case_of({2, 3, 2, 2}, attrs, key), attrs);
      check_contract(case_of({4, 3}, attrs, key, {1, 0, 0, 1}), attrs);
      NormNoiseAttrs sequences = attrs;
      sequences.positions = 3;
      check_contract(case_of({6, 5}, sequences, key), sequences);
    }
  }
}

// With x = 0 the result is M; the results of two x one apart differ by S.
TEST_CASE("norm_noise: moments of the noise") {
  constexpr std::int64_t kRows = 20000;
  const NormNoiseAttrs attrs{.n_mean = 0.5, .n_std = 3, .r_mean = 0.2, .r_std = 0.3, .seed = 5};
  const auto run = [&](double x) {
    OpCase c = case_of({kRows, 2}, attrs);
    std::ranges::fill(c.inputs[0].as<double>(), x);
    c.gradients = false;
    return run_reference(c).at("y0").clone();
  };
  const Tensor at_zero = run(0), at_one = run(1);
  const Philox random = random_stream(attrs, 3);
  for (std::int64_t j : {0, 1}) {
    const UnitNoise unit = unit_noise(attrs, random, j);
    CHECK(std::abs(unit.m) <= 0.5);
    CHECK((unit.v >= 1 && unit.v <= 3));
    double m = 0, m2 = 0, s = 0, s2 = 0;
    for (std::int64_t i = j; i < 2 * kRows; i += 2) {
      const double dm = at_zero.at(i) - unit.m, ds = at_one.at(i) - at_zero.at(i) - unit.v;
      CHECK(std::abs(dm) <= 0.2);
      m += dm / kRows, m2 += dm * dm / kRows, s += ds / kRows, s2 += ds * ds / kRows;
    }
    // Five deviations of the mean and of the variance; a uniform number has variance r^2 / 3.
    const double root = std::sqrt(double(kRows)), uniform = 0.04 / 3, gaussian = 0.09;
    CHECK(std::abs(m) < 5 * std::sqrt(uniform) / root);
    CHECK(std::abs(m2 - uniform) < 5 * uniform * std::sqrt(0.8) / root);
    CHECK(std::abs(s) < 5 * std::sqrt(gaussian) / root);
    CHECK(std::abs(s2 - gaussian) < 5 * gaussian * std::sqrt(2.0) / root);
  }
}

TEST_CASE("norm_noise: every update and layer draws anew") {
  const auto run = [](std::int32_t step, const NormNoiseAttrs& attrs) {
    return run_reference(case_of({5, 4}, attrs, {.step = step})).at("y0").clone();
  };
  const Tensor base = run(0, {.seed = 1, .stream = 1});
  check_close(run(0, {.seed = 1, .stream = 1}), base, 0);
  for (const Tensor& other : {run(1, {.seed = 1, .stream = 1}), run(0, {.seed = 2, .stream = 1}),
                              run(0, {.seed = 1, .stream = 2})}) {
    for (std::int64_t e = 0; e < 20; ++e) CHECK(other.at(e) != base.at(e));
  }
  Graph g;
  const Value x = g.input("x", {DType::kF32, {4, 2}});
  const RandomKey key{g.input("step", {DType::kI32, {}}), g.input("first_row", {DType::kI32, {}})};
  const Value a = ops::norm_noise(g, x, {key}, {});
  const auto scope = g.scope("block");
  const Value b = ops::norm_noise(g, a, {key}, {});
  CHECK(g.node(a).attrs.as<NormNoiseAttrs>().stream == stream_of("norm_noise"));
  CHECK(g.node(b).attrs.as<NormNoiseAttrs>().stream == stream_of("block/norm_noise"));
}

TEST_CASE("norm_noise: gradients") {
  gradcheck(case_of({3, 4}, {}));
  gradcheck(case_of({2, 3, 2, 2}, {}));
  gradcheck(case_of({4, 3}, {.positions = 2}, {1, 5}, {0, 1, 1, 0}));
}

TEST_CASE("norm_noise: refusals") {
  struct Types {
    TensorType x{DType::kF32, {4, 3}}, step{DType::kI32, {}}, first_row{DType::kI32, {}},
        mask{DType::kU8, {4}};
  };
  const auto refused = [](const Types& t, const NormNoiseAttrs& attrs, std::string_view message) {
    check_op_refused(
        {t.x, t.step, t.first_row, t.mask},
        [&](Graph& g, const std::vector<Value>& in) {
          return std::vector{ops::norm_noise(g, in[0], {{in[1], in[2]}, in[3]}, attrs)};
        },
        "norm_noise", message);
  };
  refused({.x = {DType::kF32, {4}}}, {}, "x: expected (rows, channels) or (n, channels, h, w)");
  refused({.step = {DType::kF32, {}}}, {}, "step: expected i32, got f32");
  refused({.step = {DType::kI32, {1}}}, {}, "step: expected (), got (1)");
  refused({.first_row = {DType::kF32, {}}}, {}, "first_row: expected i32, got f32");
  refused({.mask = {DType::kU8, {3}}}, {}, "mask: expected (4), got (3)");
  refused({.x = {DType::kF32, {4, 3, 1, 1}}}, {}, "mask: expected none for images, got (4)");
  refused({}, {.positions = 0}, "positions: expected a divisor of 4, got 0");
  refused({}, {.positions = 3}, "positions: expected a divisor of 4, got 3");
  check_op_refused(
      {{DType::kF32, {4, 3, 1, 1}}, {DType::kI32, {}}},
      [&](Graph& g, const std::vector<Value>& in) {
        return std::vector{ops::norm_noise(g, in[0], {{in[1], in[1]}}, {.positions = 2})};
      },
      "norm_noise", "positions: expected 1 for images, got 2");
  refused({.x = {DType::kF32, {1, 1ll << 32}}, .mask = {DType::kU8, {1}}}, {},
          "x: expected fewer than 4294967296 elements a row, got 4294967296");
  refused({}, {.n_mean = -1}, "n_mean: expected >= 0, got -1");
  refused({}, {.n_std = -1}, "n_std: expected >= 0, got -1");
  refused({}, {.r_mean = -1}, "r_mean: expected >= 0, got -1");
  refused({}, {.r_std = -1}, "r_std: expected >= 0, got -1");
}

}  // namespace
}  // namespace keel::test
