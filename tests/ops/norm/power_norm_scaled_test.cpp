// PowerNorm with the scaling of groups in front that its release has.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "backends/backends.h"
#include "src/ops/norm/power_norm.h"
#include "tests/support/checks.h"
#include "tests/support/gradcheck.h"
#include "tests/support/power_norm_stepper.h"
#include "tests/support/tested_backends.h"
#include "tests/support/thoroughness.h"

namespace keel::test {
namespace {

using Options = PowerNormStepper::Options;

// Every third row is left out, and two blocks of rows.
Tensor row_mask(std::int64_t rows) {
  Tensor mask(DType::kU8, Shape{rows});
  for (std::int64_t row = 0; row < rows; ++row) {
    mask.as<std::uint8_t>()[std::size_t(row)] = row % 3 != 1 && row / 70 != 1;
  }
  return mask;
}

// x is away from 0: the release divides dx by a column's mean square, and few rows make one up.
struct Batch {
  Tensor x, dy;
  Batch(const Shape& shape, std::uint32_t t)
      : x(random_normal(shape, t, 3, 1)), dy(random_normal(shape, 100 + t)) {}
};

// Some steps of both, the first of them a warm-up.
void check_same_steps(PowerNormStepper& got, PowerNormStepper& expected, const Shape& shape,
                      double tolerance) {
  for (std::uint32_t t = 1; t <= 4; ++t) {
    const Batch batch(shape, t);
    const Results a = got.step(batch.x, batch.dy), b = expected.step(batch.x, batch.dy);
    REQUIRE(a.size() == b.size());
    for (const auto& [name, value] : b) {
      CAPTURE(t);
      CAPTURE(name);
      const bool is_sum = name == "dgain" || name == "dbias";
      CHECK(largest_error(a.at(name), value, is_sum ? std::sqrt(double(shape[0])) : 1) <=
            tolerance);
    }
  }
}

// Calls body(attributes, options) for both modes, with a mask and without, in its three ways.
void for_ways(std::int64_t groups, std::int64_t rows,
              const std::function<void(const PowerNormAttrs&, const Options&)>& body) {
  const Tensor mask = row_mask(rows);
  for (const PowerNormMode mode : kPowerNormModes) {
    for (int way : {0, 1, 2}) {
      CAPTURE(mode);
      CAPTURE(way);
      body({.mode = mode, .warmup = 2, .pad_stats = way == 2, .groups = groups},
           {.mask = way > 0 ? &mask : nullptr});
    }
  }
}

struct Case {
  Shape shape;
  std::int64_t groups;
};

}  // namespace

TEST_CASE("power_norm: a scaling in front is group_scaling") {
  for (const auto& [shape, groups] : {Case{{7, 12}, 1}, {{7, 12}, 4}, {{150, 6}, 3}}) {
    CAPTURE(shape.text());
    CAPTURE(groups);
    for_ways(groups, shape[0], [&](const PowerNormAttrs& attrs, Options options) {
      PowerNormStepper together("reference", shape, attrs, options);
      options.is_apart = true;
      PowerNormStepper apart("reference", shape, attrs, options);
      check_same_steps(together, apart, shape, 1e-12);
    });
  }
}

// Groups that end with registers and groups that do not, rows that fit a part and rows that do not.
TEST_CASE("power_norm: scaled, the backend agrees with the reference, step by step" *
          doctest::test_suite("slow")) {
  for (const auto& [shape, groups] : {Case{{1, 3}, 1},
                                      {{7, 33}, 3},
                                      {{150, 128}, 4},
                                      {{150, 130}, 5},
                                      {{600, 100}, 1},
                                      {{40, 1024}, 8},
                                      {{3, 20'001}, 1},
                                      {{3, 20'001}, 3},
                                      {{3, 20'480}, 4}}) {
    CAPTURE(shape.text());
    CAPTURE(groups);
    for_ways(groups, shape[0], [&](const PowerNormAttrs& attrs, const Options& options) {
      PowerNormStepper reference("reference", shape, attrs, options);
      PowerNormStepper fast(default_backend(), shape, attrs, options);
      check_same_steps(fast, reference, shape, 3e-6);
    });
  }
}

// y in units of eps of max(1, |y|), dx of the terms that cancel: row_rstd * max |rdx * dy| of its
// group.
TEST_CASE("power_norm: scaled, errors are bounded whatever the data" *
          doctest::test_suite("slow")) {
  struct Data {
    double mean, deviation;
  };
  constexpr double kEps = 0x1p-23;
  for (const Shape& shape : {Shape{64, 300}, Shape{7, 48}, Shape{3, 16'386}}) {
    for (const Data& data : {Data{0, 1}, {1e6, 1}, {1e3, 1e-2}, {0, 1e-20}, {0, 1e15}, {1, 1e6}}) {
      CAPTURE(shape.text());
      CAPTURE(data.mean);
      CAPTURE(data.deviation);
      const std::int64_t groups = 3, width = shape[1] / groups;
      // In this mode rdx is rstd, and a warm-up takes it from the batch.
      const PowerNormAttrs attrs{.mode = PowerNormMode::kPaper, .warmup = 1, .groups = groups};
      const Tensor x = random_normal(shape, 1, data.mean, data.deviation).to(DType::kF32);
      const Tensor dy = random_normal(shape, 2).to(DType::kF32);
      PowerNormStepper reference("reference", shape, attrs), fast(default_backend(), shape, attrs);
      const Results expected = reference.step(x, dy), got = fast.step(x, dy);
      CHECK(largest_error(got.at("y"), expected.at("y"), 1) <= 16 * kEps);
      double error = 0;
      for (std::int64_t k = 0; k < shape[0] * groups; ++k) {
        double largest = 0, difference = 0;
        for (std::int64_t i = k * width; i < (k + 1) * width; ++i) {
          const double rdx = expected.at("rstd").at(i % shape[1]);
          largest = std::max(largest, std::abs(rdx * dy.at(i)));
          difference = std::max(difference, std::abs(got.at("dx").at(i) - expected.at("dx").at(i)));
        }
        error = std::max(error, difference / (expected.at("row_rstd").at(k) * largest));
      }
      CHECK(error <= 64 * kEps);
    }
  }
}

// The first column's squares are below what a float can hold.
TEST_CASE("power_norm: scaled, a column of a tiny share of its rows") {
  const Shape shape{40, 6};
  Batch batch(shape, 1);
  batch.x = batch.x.to(DType::kF32);
  for (std::size_t i = 0; i < 40 * 6; i += 6) batch.x.as<float>()[i] *= 1e-24f;
  const PowerNormAttrs attrs{.eps = 0, .warmup = 1, .groups = 1};
  PowerNormStepper reference("reference", shape, attrs), fast(default_backend(), shape, attrs);
  const Results expected = reference.step(batch.x, batch.dy), got = fast.step(batch.x, batch.dy);
  CHECK(std::abs(expected.at("y").at(0)) > 0.1);
  CHECK(largest_error(got.at("y"), expected.at("y"), 1) <= 3e-6);
}

// As large as onednn's results have to be for that; of CUDA they show nothing new.
TEST_CASE("power_norm: scaled, results written past the caches" * doctest::test_suite("slow")) {
  if (is_emulated()) return;
  for (const auto& [shape, groups] : {Case{{8200, 512}, 2}, {{208, 20'480}, 1}}) {
    CAPTURE(shape.text());
    PowerNormStepper reference("reference", shape, {.groups = groups});
    PowerNormStepper fast(default_backend(), shape, {.groups = groups});
    check_same_steps(fast, reference, shape, 3e-6);
  }
}

TEST_CASE("power_norm: scaled, the same bits for any thread count") {
  for (const auto& [shape, groups] : {Case{{1500, 96}, 2}, {{1500, 98}, 7}}) {
    CAPTURE(groups);
    const Batch batch(shape, 1);
    const auto run = [&](int threads) {
      PowerNormStepper norm(default_backend(), shape, {.groups = groups},
                            Options{.threads = threads});
      return norm.step(batch.x, batch.dy);
    };
    const Results expected = run(1);
    for (int threads : {2, 3, 7}) {
      CAPTURE(threads);
      for (const auto& [name, value] : run(threads)) {
        CAPTURE(name);
        CHECK(std::memcmp(value.data(), expected.at(name).data(), std::size_t(value.bytes())) == 0);
      }
    }
  }
}

TEST_CASE("power_norm: scaled, what rows left out hold does not matter") {
  const Tensor mask = Tensor::of<std::uint8_t>({3}, {1, 0, 1});
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const std::string& backend : tested_backends()) {
    CAPTURE(backend);
    PowerNormStepper clean(backend, {3, 2}, {.groups = 1}, &mask);
    PowerNormStepper dirty(backend, {3, 2}, {.groups = 1}, &mask);
    const Results a = clean.step(f64({3, 2}, {1, 2, 0, 0, 3, 4}), f64({3, 2}, {1, 2, 0, 0, 4, 3}));
    const Results b =
        dirty.step(f64({3, 2}, {1, 2, nan, nan, 3, 4}), f64({3, 2}, {1, 2, nan, 5, 4, 3}));
    for (const auto& [name, value] : a) {
      if (name == "row_rstd") continue;
      CAPTURE(name);
      check_close(b.at(name).to(DType::kF64), value.to(DType::kF64), 0);
    }
    for (int c : {2, 3}) {
      CHECK(b.at("y").at(c) == 0);
      CHECK(b.at("dx").at(c) == 0);
    }
  }
}

// In evaluation psi is a constant, so that dx is the derivative, through the scaling too.
TEST_CASE("power_norm: scaled, dx is the derivative in evaluation") {
  for (const std::int64_t groups : {1, 2}) {
    OpCase c;
    c.inputs.push_back(random_normal(Shape{5, 6}, 1, 0.5));
    for (std::uint32_t i : {2, 3}) c.inputs.push_back(random_normal(Shape{6}, i, 1));
    c.build = [&](Graph& g, const std::vector<Value>& in) {
      const Value psi2 = g.constant(random_normal({6}, 4, 2, 0.1));
      const Value nu = g.constant(random_normal({6}, 5));
      return std::vector{ops::power_norm(g, in[0], {in[1], in[2]}, {psi2, nu, {}, {}},
                                         {.training = false, .groups = groups})};
    };
    gradcheck(c);
  }
}

TEST_CASE("power_norm: refusals of a scaling") {
  const auto refused = [](const TensorType& x, const PowerNormAttrs& attrs,
                          std::string_view message) {
    const TensorType channels{DType::kF32, {x.shape[1]}};
    check_op_refused(
        {x, channels, channels, channels, channels},
        [&](Graph& g, const std::vector<Value>& in) {
          return std::vector{
              ops::power_norm(g, in[0], {in[1], in[2]}, {in[3], in[4], {}, {}}, attrs)};
        },
        "power_norm", message);
  };
  refused({DType::kF32, {4, 6}}, {.groups = 4}, "groups: expected a divisor of 6 features, got 4");
  refused({DType::kF32, {4, 6}}, {.groups = -1}, "groups: expected >= 0, got -1");
  refused({DType::kF32, {4, 6}}, {.groups = 2, .scaling_eps = -1}, "eps: expected >= 0, got -1");
  refused({DType::kF32, {4, 6, 2, 2}}, {.groups = 2}, "x: expected (rows, channels) with groups");
}

}  // namespace keel::test
