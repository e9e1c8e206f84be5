// The density of a mixture of normal distributions of the plane.
#include "src/ops/mixture_density.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "src/autodiff/gradient.h"
#include "tests/support/checks.h"
#include "tests/support/gradcheck.h"

namespace keel::test {
namespace {

constexpr double kLog2Pi = 1.8378770664093453;

OpCase mixture_case(Tensor y, Tensor points, Tensor mask = {}) {
  OpCase c;
  c.inputs.push_back(std::move(y));
  c.inputs.push_back(std::move(points));
  const bool has_mask = mask.elements() > 0 && mask.dtype() == DType::kU8;
  if (has_mask) c.inputs.push_back(std::move(mask));
  c.build = [has_mask](Graph& g, const std::vector<Value>& v) {
    return std::vector{ops::mixture_density(g, v[0], v[1], has_mask ? v[2] : Value{}).nll};
  };
  return c;
}

// Only the outputs.
Results forward_of(OpCase c) {
  c.gradients = false;
  c.build = [](Graph& g, const std::vector<Value>& v) {
    const auto mixture = ops::mixture_density(g, v[0], v[1], v.size() > 2 ? v[2] : Value{});
    return std::vector{mixture.nll, mixture.held};
  };
  return run_reference(c);
}

TEST_CASE("mixture_density: one component, by hand") {
  const double ln2 = std::numbers::ln2, ln3 = std::log(3.0);
  // At the mean of a standard normal distribution, the pen as likely down as up.
  Tensor y = f64({3, 7}, {0,   5, 1, -2, 0,   0, 0,      // sigma 1, rho 0
                          ln3, 0, 0, 0,  ln2, 0, 0,      // sigma1 2, a = 1, b = 0; e = 1/4
                          ln3, 0, 0, 0,  0,   0, ln3});  // rho = tanh(ln 3) = 4/5, a = 1, b = 1
  const Tensor points = f64({3, 3}, {1, -2, 0, 2, 0, 1, 1, 1, 0});
  const double z = 2 - 2 * 0.8, c = 1 / (1 - 0.64);
  check_close(forward_of(mixture_case(std::move(y), points.clone())).at("y0"),
              f64({3}, {kLog2Pi + ln2, kLog2Pi + ln2 + 0.5 + 2 * ln2,
                        kLog2Pi - std::log(c) / 2 + z * c / 2 - std::log(0.75)}),
              1e-14);
}

TEST_CASE("mixture_density: the density integrates to 1, each way of the pen to its share") {
  constexpr std::int64_t kSide = 161, kPoints = kSide * kSide;
  constexpr double kReach = 8, kStep = 2 * kReach / double(kSide - 1);
  const double row[] = {0.4,  0.3, -0.5, 1,   0.7, -1,  0,    0.5, 1,  -1,
                        -0.4, 0.2, -0.3, 0.1, 0,   0.3, -1.2, 0.6, 1.1};
  Tensor y(DType::kF64, {kPoints, 19}), points(DType::kF64, {kPoints, 3});
  for (std::int64_t i = 0; i < kPoints; ++i) {
    std::copy_n(row, 19, y.as<double>().begin() + i * 19);
    points.as<double>()[std::size_t(3 * i)] = -kReach + kStep * double(i % kSide);
    points.as<double>()[std::size_t(3 * i + 1)] = -kReach + kStep * double(i / kSide);
  }
  const Tensor nll = forward_of(mixture_case(std::move(y), std::move(points))).at("y0").clone();
  double total = 0;
  for (std::int64_t i = 0; i < kPoints; ++i) total += std::exp(-nll.at(i)) * kStep * kStep;
  // The pen stays down with the probability 1 - e = sigmoid(0.4).
  CHECK(total == doctest::Approx(1 / (1 + std::exp(-0.4))).epsilon(1e-6));
}

TEST_CASE("mixture_density: what lies beyond the limits is held there and counted") {
  // rho^ = +-9.5, sigma^ = -12, and ten equal points on a component's mean.
  Tensor y(DType::kF64, {10, 13}), points(DType::kF64, {10, 3});
  for (std::int64_t i = 0; i < 10; ++i) {
    const double row[] = {0, 0, 0, 1, 1, 2, 2, -12, 0, -12, -7, 9.5, i % 2 == 0 ? -9.5 : 8.0};
    std::copy_n(row, 13, y.as<double>().begin() + i * 13);
    points.as<double>()[std::size_t(3 * i)] = 1;
    points.as<double>()[std::size_t(3 * i + 1)] = 2;
  }
  OpCase c = mixture_case(std::move(y), std::move(points));
  OpCase copy = mixture_case(c.inputs[0].clone(), c.inputs[1].clone());
  const Results forward = forward_of(std::move(copy)), results = run_reference(c);
  for (std::int64_t i = 0; i < 10; ++i) {
    CHECK(forward.at("y1").at(i) == (i % 2 == 0 ? 4 : 3));
    // The first component has all of the density: log N = -log 2 pi + 14 + log cosh 8.
    CHECK(forward.at("y0").at(i) ==
          doctest::Approx(kLog2Pi - 14 - std::log(std::cosh(8.0)) + 2 * std::numbers::ln2)
              .epsilon(1e-3));
    for (std::int64_t column = 0; column < 13; ++column) {
      CHECK(std::isfinite(results.at("d0").at(i * 13 + column)));
    }
    for (const std::int64_t held : {7, 9, 11}) CHECK(results.at("d0").at(i * 13 + held) == 0);
    CHECK((results.at("d0").at(i * 13 + 12) == 0) == (i % 2 == 0));
  }
}

TEST_CASE("mixture_density: gradients") {
  for (const std::int64_t components : {1, 2}) {
    CAPTURE(components);
    Tensor points = random_normal({4, 3}, 2);
    for (std::int64_t i = 0; i < 4; ++i)
      points.as<double>()[std::size_t(3 * i + 2)] = double(i % 2);
    const Tensor y = random_normal({4, 1 + 6 * components}, 1, 0, 0.7);
    gradcheck(mixture_case(y.clone(), points.clone()), {.skip = {1}});
    gradcheck(mixture_case(y.clone(), points.clone(), Tensor::of<std::uint8_t>({4}, {1, 0, 1, 1})),
              {.skip = {1}});
  }
}

TEST_CASE("mixture_density: what the mask hides does not matter, be it no number") {
  Tensor y(DType::kF64, {2, 7});
  y.as<double>()[9] = std::nan("");
  OpCase c = mixture_case(std::move(y), f64({2, 3}, {0, 0, 0, std::nan(""), 0, 1}),
                          Tensor::of<std::uint8_t>({2}, {1, 0}));
  const Results results = run_reference(c);
  check_close(results.at("y0"), f64({2}, {kLog2Pi + std::numbers::ln2, 0}));
  for (std::int64_t e = 7; e < 14; ++e) CHECK(results.at("d0").at(e) == 0);
}

TEST_CASE("mixture_density: the pen's part alone says how likely a lift is") {
  // Far apart, sigma(-e^) = 1 and 0: no infinity from a logarithm of 0.
  const Results results =
      forward_of(mixture_case(f64({2, 7}, {800, 0, 0, 0, 0, 0, 0, -800, 0, 0, 0, 0, 0, 0}),
                              f64({2, 3}, {0, 0, 1, 0, 0, 1})));
  check_close(results.at("y0"), f64({2}, {kLog2Pi + 800, kLog2Pi}));
}

TEST_CASE("mixture_density: refusals") {
  const TensorType y{DType::kF32, {4, 13}}, points{DType::kF32, {4, 3}}, mask{DType::kU8, {4}};
  const auto mixture = [](MixtureAttrs attrs) -> Build {
    return [attrs](Graph& g, const std::vector<Value>& v) {
      return std::vector{ops::mixture_density(g, v[0], v[1], v[2], attrs).nll};
    };
  };
  const char* op = "mixture_density";
  const auto all = mixture({});
  check_op_refused({{DType::kI32, {4, 13}}, points, mask}, all, op, "y: expected a floating type");
  for (const std::int64_t width : {1, 6, 12, 14}) {
    check_op_refused({{DType::kF32, {4, width}}, points, mask}, all, op,
                     fmt::format("y: expected (points, 1 + 6 components), got (4, {})", width));
  }
  check_op_refused({y, {DType::kF64, {4, 3}}, mask}, all, op, "points: expected f32, got f64");
  check_op_refused({y, {DType::kF32, {4, 2}}, mask}, all, op, "points: expected (4, 3)");
  check_op_refused({y, points, {DType::kI32, {4}}}, all, op, "mask: expected u8, got i32");
  check_op_refused({y, points, {DType::kU8, {3}}}, all, op, "mask: expected (4), got (3)");
  check_op_refused({y, points, mask}, mixture({.largest_rho = 0}), op,
                   "largest_rho: expected above 0, got 0");
}

}  // namespace
}  // namespace keel::test
