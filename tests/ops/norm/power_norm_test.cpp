// PowerNorm: agreement of backends, worked examples, warm-up, evaluation, refusals.
#include "src/ops/norm/power_norm.h"

#include <doctest/doctest.h>

#include <cmath>

#include "backends/backends.h"
#include "tests/support/checks.h"
#include "tests/support/gradcheck.h"
#include "tests/support/norm_golden.h"
#include "tests/support/norm_template.h"
#include "tests/support/power_norm_stepper.h"
#include "tests/support/tested_backends.h"

namespace keel::test {
namespace {

// Rounded, as the worked examples are.
void check_golden_values(const Tensor& got, std::string_view section, std::string_view key,
                         double tolerance = 1e-5) {
  CAPTURE(section);
  CAPTURE(key);
  const Tensor expected = golden(section, key);
  REQUIRE(got.elements() == expected.elements());
  for (std::int64_t i = 0; i < got.elements(); ++i) {
    CHECK(std::abs(got.at(i) - expected.at(i)) <= tolerance);
  }
}

// factor * value of each element, the rows in reverse order when `reversed`.
Tensor scaled(const Tensor& t, double factor, bool reversed = false) {
  Tensor result(DType::kF64, t.shape());
  const std::int64_t width = t.shape().back(), rows = t.elements() / width;
  for (std::int64_t i = 0; i < t.elements(); ++i) {
    const std::int64_t from = reversed ? (rows - 1 - i / width) * width + i % width : i;
    result.as<double>()[std::size_t(i)] = factor * t.at(from);
  }
  return result;
}

NormSpec spec(PowerNormAttrs attrs, NormLayout layout) {
  const auto build = [attrs](Graph& g, const NormInputs& in, double eps) mutable {
    attrs.eps = eps;
    return ops::power_norm(g, in.x, {in.gain, in.bias}, {in.state[0], in.state[1], {}, {}}, attrs);
  };
  return {.build = build, .layout = layout, .states = 2, .own_statistics = false, .centred = false};
}

}  // namespace

TEST_CASE("power_norm: release, tokens" * doctest::test_suite("slow")) {
  check_norm(spec({.mode = PowerNormMode::kRelease}, NormLayout::kColumns));
}

TEST_CASE("power_norm: release, images" * doctest::test_suite("slow")) {
  check_norm(spec({.mode = PowerNormMode::kRelease}, NormLayout::kImages));
  check_norm(spec({.mode = PowerNormMode::kRelease}, NormLayout::kThumbnails));
}

TEST_CASE("power_norm: the backend agrees with the reference, step by step" *
          doctest::test_suite("slow")) {
  for (const Shape& shape : {Shape{1, 3}, Shape{7, 33}, Shape{150, 130}, Shape{3000, 37},
                             Shape{2, 5, 3, 11}, Shape{16, 20, 9, 9}}) {
    for (const PowerNormMode mode : kPowerNormModes) {
      CAPTURE(shape.text());
      CAPTURE(mode);
      const PowerNormAttrs attrs{.mode = mode, .warmup = 3};
      PowerNormStepper reference("reference", shape, attrs), fast(default_backend(), shape, attrs);
      for (std::uint32_t t = 1; t <= 5; ++t) {
        const Tensor x = random_normal(shape, t, 1, 2), dy = random_normal(shape, 100 + t);
        const Results expected = reference.step(x, dy), got = fast.step(x, dy);
        const double terms = std::sqrt(double(shape.elements() / shape[1]));
        for (const auto& [name, value] : expected) {
          CAPTURE(name);
          const bool is_sum = name == "dgain" || name == "dbias";
          CHECK(largest_error(got.at(name), value, is_sum ? terms : 1) <= 3e-6);
        }
      }
    }
  }
}

TEST_CASE("power_norm: worked example, two steps") {
  for (const std::string& backend : tested_backends()) {
    for (const PowerNormMode mode : kPowerNormModes) {
      CAPTURE(backend);
      const Tensor x = golden("inputs", "x"), dy = golden("inputs", "dy");
      PowerNormStepper norm(backend, {4, 6}, {.mode = mode});
      norm.write("gain", golden("inputs", "gamma"));
      norm.write("bias", golden("inputs", "beta"));
      for (int t : {1, 2}) {
        const Results got =
            t == 1 ? norm.step(x, dy) : norm.step(scaled(x, 1.5, true), scaled(dy, 1, true));
        const std::string section = fmt::format("PowerNorm step {} (alpha=0.9/0.9, no warm-up)", t);
        check_golden_values(got.at("y"), section, "y");
        check_golden_values(got.at("dx"), section, "dx_" + std::string(choice_text(mode)));
        check_golden_values(got.at("Gamma"), section, "Gamma");
        check_golden_values(got.at("psi2"), section, "psi2_new");
        check_golden_values(got.at("nu"), section, "nu_new");
        CHECK(got.at("step").at(0) == t);
      }
    }
  }
}

TEST_CASE("power_norm: worked example, warm-up") {
  for (const std::string& backend : tested_backends()) {
    PowerNormStepper norm(backend, {4, 6}, {.warmup = 2});
    for (int t : {1, 2, 3}) {
      const Tensor x = scaled(golden("inputs", "x"), std::sqrt(double(t)));
      const Results got = norm.step(x, golden("inputs", "dy"));
      Tensor squares(DType::kF64, Shape{6});
      for (std::int64_t c = 0; c < 6; ++c) {
        squares.as<double>()[std::size_t(c)] = std::pow(got.at("rstd").at(c), -2) - 1e-5;
      }
      const std::string section = fmt::format("PN release warm-up W=2, t={}, input sqrt(t)*x", t);
      check_golden_values(squares, section, "denominator_sq", 2e-5);
      check_golden_values(got.at("psi2"), section, "psi2_new");
    }
  }
}

// While t < warmup, release averages twice and paper once; until t = warmup both divide by the
// batch's own mean.
TEST_CASE("power_norm: warm-up in both modes") {
  for (const std::string& backend : tested_backends()) {
    for (const PowerNormMode mode : kPowerNormModes) {
      CAPTURE(mode);
      PowerNormStepper norm(backend, {3, 1},
                            {.mode = mode, .eps = 0, .alpha_f = 0.75, .warmup = 4});
      double psi2 = 1;
      for (int t = 1; t <= 6; ++t) {
        const double batch = t * t, before = psi2;
        if (t < 4) psi2 = (psi2 * (t - 1) + batch) / t;
        if (t >= 4 || mode == PowerNormMode::kRelease) psi2 = 0.75 * psi2 + 0.25 * batch;
        const double value = t;
        const Results got = norm.step(f64({3, 1}, {value, -value, value}), f64({3, 1}, {1, 1, 1}));
        CHECK(got.at("psi2").at(0) == doctest::Approx(psi2));
        CHECK(got.at("y").at(1) == doctest::Approx(t <= 4 ? -1 : -value / std::sqrt(before)));
      }
    }
  }
}

// In evaluation the divisor is a constant, and dx too is the derivative.
TEST_CASE("power_norm: dgain and dbias are derivatives, in evaluation dx as well") {
  for (bool training : {true, false}) {
    for (const Shape& shape : {Shape{6, 3}, Shape{2, 3, 2, 4}}) {
      OpCase c;
      c.inputs.push_back(random_normal(shape, 1, 0.5));
      for (std::uint32_t i : {2, 3}) c.inputs.push_back(random_normal(Shape{3}, i, 1));
      c.build = [&](Graph& g, const std::vector<Value>& in) {
        const Value psi2 = g.constant(random_normal({3}, 4, 2, 0.1));
        const Value nu = g.constant(random_normal({3}, 5));
        return std::vector{
            ops::power_norm(g, in[0], {in[1], in[2]}, {psi2, nu, {}, {}}, {.training = training})};
      };
      GradcheckOptions options;
      if (training) options.skip = {0};
      gradcheck(c, options);
    }
  }
}

TEST_CASE("power_norm: evaluation divides by psi and changes nothing") {
  for (const std::string& backend : tested_backends()) {
    PowerNormStepper norm(backend, {2, 1}, {.eps = 0, .training = false});
    norm.write("psi2", f64({1}, {16}));
    norm.write("nu", f64({1}, {5}));
    const Results got = norm.step(f64({2, 1}, {2, -8}), f64({2, 1}, {1, 3}));
    check_close(got.at("y").to(DType::kF64), f64({2, 1}, {0.5, -2}), 1e-6);
    check_close(got.at("dx").to(DType::kF64), f64({2, 1}, {0.25, 0.75}), 1e-6);
    CHECK(got.at("psi2").at(0) == 16);
    CHECK(got.at("nu").at(0) == 5);
    CHECK(got.at("step").at(0) == 0);
  }
}

// xhat = 6 / 2, Gamma 9, Lambda 3 * 4; the release divides dx by 6.
TEST_CASE("power_norm: a batch of one row") {
  for (const std::string& backend : tested_backends()) {
    for (const PowerNormMode mode : kPowerNormModes) {
      PowerNormStepper norm(backend, {1, 1},
                            {.mode = mode, .eps = 0, .alpha_f = 0.5, .alpha_b = 0.75});
      norm.write("psi2", f64({1}, {4}));
      norm.write("nu", f64({1}, {0.5}));
      const Results got = norm.step(f64({1, 1}, {6}), f64({1, 1}, {4}));
      CHECK(got.at("y").at(0) == doctest::Approx(3));
      CHECK(got.at("dx").at(0) == doctest::Approx(2.5 / (mode == PowerNormMode::kPaper ? 2 : 6)));
      CHECK(got.at("dgain").at(0) == doctest::Approx(12));
      CHECK(got.at("psi2").at(0) == doctest::Approx(20));
      CHECK(got.at("nu").at(0) == doctest::Approx(0.5 * (1 - 0.25 * 9) + 0.25 * 12));
    }
  }
}

TEST_CASE("power_norm: refusals") {
  const TensorType x{DType::kF32, {4, 3}}, three{DType::kF32, {3}}, four{DType::kF32, {4}};
  const TensorType step{DType::kI32, {}}, mask{DType::kU8, {4}};
  const auto refused = [](const std::vector<TensorType>& inputs, const PowerNormAttrs& attrs,
                          std::string_view message) {
    check_op_refused(
        inputs,
        [&](Graph& g, const std::vector<Value>& in) {
          const ops::PowerNormState state{in[3], in[4], in.size() > 5 ? in[5] : Value{},
                                          in.size() > 6 ? in[6] : Value{}};
          return std::vector{ops::power_norm(g, in[0], {in[1], in[2]}, state, attrs)};
        },
        "power_norm", message);
  };
  refused({four, three, three, three, three}, {}, "x: expected (rows, channels) or");
  refused({x, four, three, three, three}, {}, "gain: expected (3), got (4)");
  refused({x, three, three, four, three}, {}, "psi2: expected (3), got (4)");
  refused({x, three, three, three, four}, {}, "nu: expected (3), got (4)");
  refused({x, three, three, three, three, {DType::kI32, {1}}}, {}, "step: expected (), got (1)");
  refused({x, three, three, three, three, {DType::kF32, {}}}, {}, "step: expected i32, got f32");
  refused({x, three, three, three, three, step, {DType::kU8, {3}}}, {}, "mask: expected (4)");
  const std::vector<TensorType> all{x, three, three, three, three, step, mask};
  refused(all, {.eps = -1}, "eps: expected >= 0, got -1");
  refused(all, {.alpha_f = 1.5}, "alpha_f: expected in [0, 1], got 1.5");
  refused(all, {.alpha_b = -1}, "alpha_b: expected in [0, 1], got -1");
  refused(all, {.warmup = -1}, "warmup: expected >= 0, got -1");
  refused({x, three, three, three, three}, {.warmup = 1}, "step: expected a counter");
}

}  // namespace keel::test
