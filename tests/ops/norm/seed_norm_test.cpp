// SeeDNorm: gradients, values by hand, agreement of backends, refusals.
#include "src/ops/norm/seed_norm.h"

#include <doctest/doctest.h>

#include <cmath>

#include "backends/backends.h"
#include "tests/support/checks.h"
#include "tests/support/gradcheck.h"
#include "tests/support/norm_checks.h"
#include "tests/support/tested_backends.h"

namespace keel::test {
namespace {

// The gain serves as b and the bias as a, since all lie along a row.
Value seed_norm(Graph& g, const NormInputs& in, double eps) {
  return ops::seed_norm(g, in.x, {in.gain, in.bias, in.gain}, {.eps = eps});
}

const NormSpec kSeedRows{.build = seed_norm, .centred = false};

// x = (1, 7), whose mean square is 25, with b = (ln 2, 0): the score is ln 2, its tanh 3/5.
NormData by_hand() {
  NormData data{f64({1, 2}, {1, 7}), f64({1, 2}, {1, 2}), f64({2}, {2, 3}), {}, {}, 0};
  data.more["a"] = f64({2}, {5, 10});
  data.more["b"] = f64({2}, {std::log(2.0), 0});
  return data;
}

}  // namespace

TEST_CASE("seed_norm: the backward is the derivative") {
  for (const bool gain : {false, true}) {
    for (const Shape& shape : {Shape{3, 7}, Shape{4, 1}, Shape{9, 35}}) {
      OpCase c;
      c.inputs.push_back(random_normal(shape, 1, 0.5, 2));
      for (std::uint32_t i : {2, 3}) c.inputs.push_back(random_normal(Shape{shape[1]}, i, 1));
      c.inputs.push_back(random_normal(Shape{shape[1]}, 4, 0, 0.1));
      c.build = [gain](Graph& g, const std::vector<Value>& in) {
        return std::vector{
            ops::seed_norm(g, in[0], {gain ? in[1] : Value{}, in[2], in[3]}, {.eps = 1e-2})};
      };
      gradcheck(c);
    }
  }
}

// y = (3/5 a + gain) xhat with xhat = (1/5, 7/5).
TEST_CASE("seed_norm: values by hand") {
  const NormBuild build = [](Graph& g, const NormInputs& in, double eps) {
    return ops::seed_norm(g, in.x, {in.gain, in.more.at("a"), in.more.at("b")}, {.eps = eps});
  };
  for (const std::string& backend : tested_backends()) {
    const NormResult got = run_norm(*make_backend(backend), build, by_hand());
    const auto check = [&](const Tensor& value, const Tensor& expected) {
      check_close(value.to(DType::kF64), expected, 1e-6);
    };
    check(got.outputs[SeedNormOutput::kY], f64({1, 2}, {1, 12.6}));
    check(got.outputs[SeedNormOutput::kRstd], f64({1}, {0.2}));
    check(got.outputs[SeedNormOutput::kScore], f64({1}, {std::log(2.0)}));
    // g = (5, 18), mean(g xhat) = 13.1; dscore = 16/25 (1 + 28).
    const double dscore = 0.64 * 29;
    check(got.gradients[SeedNormInput::kX],
          f64({1, 2}, {0.2 * (5 - 0.2 * 13.1) + dscore * std::log(2.0), 0.2 * (18 - 1.4 * 13.1)}));
    check(got.gradients[SeedNormInput::kGain], f64({2}, {0.2, 2.8}));
    check(got.gradients[SeedNormInput::kA], f64({2}, {0.12, 1.68}));
    check(got.gradients[SeedNormInput::kB], f64({2}, {dscore, 7 * dscore}));
  }
}

// The mean square of (3, 4) is 12.5, and with an eps of 3.5 the root is 4; b = 0 leaves the gain.
TEST_CASE("seed_norm: eps stands under the root") {
  NormData data{f64({1, 2}, {3, 4}), f64({1, 2}, {1, 2}), f64({2}, {2, 3}), {}, {}, 3.5};
  data.more["a"] = f64({2}, {5, 10});
  data.more["b"] = f64({2}, {0, 0});
  const NormBuild build = [](Graph& g, const NormInputs& in, double eps) {
    return ops::seed_norm(g, in.x, {in.gain, in.more.at("a"), in.more.at("b")}, {.eps = eps});
  };
  for (const std::string& backend : tested_backends()) {
    CAPTURE(backend);
    const NormResult got = run_norm(*make_backend(backend), build, data);
    check_close(got.outputs[SeedNormOutput::kY].to(DType::kF64), f64({1, 2}, {1.5, 3}), 1e-6);
    check_close(got.outputs[SeedNormOutput::kRstd].to(DType::kF64), f64({1}, {0.25}), 1e-6);
  }
}

TEST_CASE("seed_norm: any thread count, in place, any order and split of rows" *
          doctest::test_suite("slow")) {
  if (default_backend() == "reference") return;
  SUBCASE("any thread count") { check_threads(kSeedRows); }
  SUBCASE("in place") { check_in_place(kSeedRows); }
  SUBCASE("any order and split of rows") { check_rows(kSeedRows); }
}

TEST_CASE("seed_norm: wide rows agree with the reference") {
  if (default_backend() == "reference") return;
  for (const auto& [rows, width] : {std::pair{9, 37}, {300, 130}, {65, 1030}, {5, 20000}}) {
    NormData data = data_of(kSeedRows, {.groups = rows, .n = width});
    for (double& b : data.gain->as<double>()) b = double(float((b - 1) / double(width)));
    const NormResult got = run_fast(kSeedRows, data), expected = run_reference(kSeedRows, data);
    CAPTURE(rows);
    CAPTURE(width);
    CHECK(got.workspace <= (1 << 20) + 64 * width);
    for (const auto& [of, other] :
         {std::pair{&got.outputs, &expected.outputs}, {&got.gradients, &expected.gradients}}) {
      for (std::size_t i = 0; i < of->size(); ++i) {
        CAPTURE(i);
        check_close((*of)[i].to(DType::kF64), (*other)[i], 4e-6);
      }
    }
  }
}

TEST_CASE("seed_norm: refusals") {
  const auto refused = [](const std::vector<TensorType>& inputs, const SeedNormAttrs& attrs,
                          std::string_view message) {
    check_op_refused(
        inputs,
        [&](Graph& g, const std::vector<Value>& in) {
          const auto at = [&](std::size_t i) { return i < in.size() ? in[i] : Value{}; };
          return std::vector{ops::seed_norm(g, in[0], {at(3), at(1), at(2)}, attrs)};
        },
        "seed_norm", message);
  };
  const TensorType x{DType::kF32, {3, 4}}, four{DType::kF32, {4}}, three{DType::kF32, {3}};
  refused({x, four, four}, {.axes = 3}, "axes: expected 1 to the rank of (3, 4), got 3");
  refused({x, four, four}, {.eps = -1}, "eps: expected >= 0, got -1");
  refused({x}, {}, "a: expected (4), got none");
  refused({x, four}, {}, "b: expected (4), got none");
  refused({x, three, four}, {}, "a: expected (4), got (3)");
  refused({x, four, three}, {}, "b: expected (4), got (3)");
  refused({x, four, four, three}, {}, "gain: expected (4), got (3)");
  refused({x, four, {DType::kF64, {4}}}, {}, "b: expected f32, got f64");
}

}  // namespace keel::test
