// The noise behind a batch norm: the contract of src/ops/norm_noise.h, and its moments.
#include "src/ops/norm_noise.h"

#include <doctest/doctest.h>

#include <cmath>

#include "tests/support/checks.h"
#include "tests/support/gradcheck.h"

namespace keel::test {
namespace {

OpCase case_of(const Shape& shape, const NormNoiseAttrs& attrs, std::int32_t step = 3,
               std::vector<std::uint8_t> mask = {}) {
  OpCase c;
  c.inputs.push_back(random_normal(shape, 1));
  c.inputs.push_back(i32({}, {step}));
  if (!mask.empty()) c.inputs.push_back(Tensor::of<std::uint8_t>({std::ssize(mask)}, mask));
  c.build = [attrs](Graph& g, const std::vector<Value>& v) {
    const Value row_mask = v.size() > 2 ? v[2] : Value{};
    return std::vector{g.add(kNormNoise, {v[0], v[1], row_mask}, attrs)};
  };
  return c;
}

// y = S x + M by the words of the contract.
struct Drawn {
  double s, m;
};
Drawn drawn(const NormNoiseAttrs& a, const Philox& random, std::uint64_t j, std::uint64_t k) {
  const std::uint64_t unit = (1ull << 63) + 4 * j;
  const auto around = [&](double centre, double width, std::uint64_t e) {
    return centre - width + 2 * width * random.uniform(e);
  };
  return {1 + (a.n_std - 1) * random.uniform(unit + 1) + a.r_std * random.normal(2 * k + 1),
          around(around(0, a.n_mean, unit), a.r_mean, 4 * k)};
}

void check_contract(const OpCase& c, const NormNoiseAttrs& attrs, std::int32_t step) {
  const Shape& shape = c.inputs[0].shape();
  const std::int64_t channels = shape[1], inner = shape.elements(2, shape.rank());
  const Results results = run_reference(c);
  const Tensor weights = random_normal(shape, 900);  // what run_case differentiates
  const Philox random(std::uint64_t(attrs.seed), std::uint32_t(attrs.stream), std::uint32_t(step));
  for (std::int64_t e = 0; e < shape.elements(); ++e) {
    CAPTURE(e);
    const std::int64_t k = e / inner;
    const bool is_kept = c.inputs.size() < 3 || c.inputs[2].at(k / channels) != 0;
    const auto [s, m] =
        is_kept ? drawn(attrs, random, std::uint64_t(k % channels), std::uint64_t(k)) : Drawn{1, 0};
    CHECK(results.at("y0").at(e) == doctest::Approx(s * c.inputs[0].at(e) + m).epsilon(1e-12));
    CHECK(results.at("d0").at(e) == doctest::Approx(s * weights.at(e)).epsilon(1e-12));
  }
}

TEST_CASE("norm_noise: y = S x + M, drawn by the words of the contract") {
  const NormNoiseAttrs rows[] = {{.seed = 1, .stream = 2},
                                 {2, 3, 0.5, 0.25, -1, 0xFFFFFFFFll},
                                 {0, 1, 0, 0, 0x123456789ll, 7}};
  for (const NormNoiseAttrs& attrs : rows) {
    for (std::int32_t step : {0, 1, 1000000}) {
      check_contract(case_of({4, 3}, attrs, step), attrs, step);
      check_contract(case_of({2, 3, 2, 2}, attrs, step), attrs, step);
      check_contract(case_of({4, 3}, attrs, step, {1, 0, 0, 1}), attrs, step);
    }
  }
}

// Of x = 0 it leaves M, of two x one apart it leaves S.
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
  const Philox random = attrs.random(3);
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

TEST_CASE("norm_noise: every step and layer draws anew") {
  const auto run = [](std::int32_t step, const NormNoiseAttrs& attrs) {
    return run_reference(case_of({5, 4}, attrs, step)).at("y0").clone();
  };
  const Tensor base = run(0, {.seed = 1, .stream = 1});
  check_close(run(0, {.seed = 1, .stream = 1}), base, 0);
  for (const Tensor& other : {run(1, {.seed = 1, .stream = 1}), run(0, {.seed = 2, .stream = 1}),
                              run(0, {.seed = 1, .stream = 2})}) {
    for (std::int64_t e = 0; e < 20; ++e) CHECK(other.at(e) != base.at(e));
  }
  Graph g;
  const Value x = g.input("x", {DType::kF32, {4, 2}}), step = g.input("step", {DType::kI32, {}});
  const Value a = ops::norm_noise(g, x, {step, {}}, {});
  const auto scope = g.scope("block");
  const Value b = ops::norm_noise(g, a, {step, {}}, {});
  CHECK(g.node(a).attrs.as<NormNoiseAttrs>().stream == stream_of("norm_noise"));
  CHECK(g.node(b).attrs.as<NormNoiseAttrs>().stream == stream_of("block/norm_noise"));
}

TEST_CASE("norm_noise: gradients") {
  gradcheck(case_of({3, 4}, {}));
  gradcheck(case_of({2, 3, 2, 2}, {}));
  gradcheck(case_of({4, 3}, {}, 1, {0, 1, 1, 0}));
}

TEST_CASE("norm_noise: refusals") {
  struct Types {
    TensorType x{DType::kF32, {4, 3}}, step{DType::kI32, {}}, mask{DType::kU8, {4}};
  };
  const auto refused = [](const Types& t, const NormNoiseAttrs& attrs, std::string_view message) {
    check_op_refused(
        {t.x, t.step, t.mask},
        [&](Graph& g, const std::vector<Value>& in) {
          return std::vector{ops::norm_noise(g, in[0], {in[1], in[2]}, attrs)};
        },
        "norm_noise", message);
  };
  refused({.x = {DType::kF32, {4}}}, {}, "x: expected (rows, channels) or (n, channels, h, w)");
  refused({.step = {DType::kF32, {}}}, {}, "step: expected i32, got f32");
  refused({.step = {DType::kI32, {1}}}, {}, "step: expected (), got (1)");
  refused({.mask = {DType::kU8, {3}}}, {}, "mask: expected (4), got (3)");
  refused({.x = {DType::kF32, {4, 3, 1, 1}}}, {}, "mask: expected none for images, got (4)");
  refused({}, {.n_mean = -1}, "n_mean: expected >= 0, got -1");
  refused({}, {.n_std = -1}, "n_std: expected >= 0, got -1");
  refused({}, {.r_mean = -1}, "r_mean: expected >= 0, got -1");
  refused({}, {.r_std = -1}, "r_std: expected >= 0, got -1");
}

}  // namespace
}  // namespace keel::test
