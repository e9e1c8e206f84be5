// Dynamic tanh: gradients, values by hand, agreement of backends, refusals.
#include "src/ops/norm/dyt.h"

#include <doctest/doctest.h>

#include <cmath>

#include "src/ops/layout.h"
#include "tests/support/checks.h"
#include "tests/support/curve_checks.h"

namespace keel::test {
namespace {

Value dyt(Graph& g, const NormInputs& in, double) {
  return ops::dyt(g, in.x, {in.gain, in.bias}, in.more.at("alpha"));
}

const CurveNorm kDytNorm{dyt, {"alpha"}};

}  // namespace

TEST_CASE("dyt: the backward is the derivative") { check_curve_gradients(kDytNorm); }

TEST_CASE("dyt: the backend keeps the promises of a row norm" * doctest::test_suite("slow")) {
  if (default_backend() == "reference") return;
  const NormSpec row = curve_spec(kDytNorm, 0.5, 0);
  SUBCASE("agreement") { check_curve_agrees(kDytNorm); }
  SUBCASE("any thread count") { check_threads(row); }
  SUBCASE("in place") { check_in_place(row); }
  SUBCASE("any order and split of rows") { check_rows(row); }
  SUBCASE("special values") { check_curve_specials(kDytNorm); }
  SUBCASE("a gain without a bias, a bias without a gain, neither") {
    for (const auto& [gain, bias] : {std::pair{true, false}, {false, true}, {false, false}}) {
      const NormCase c{.groups = 65, .n = 37, .gain = gain, .bias = bias};
      check_case(row, c);
    }
  }
}

// tanh(ln 2) = 3/5 and 1 - tanh^2 = 16/25.
TEST_CASE("dyt: values by hand") {
  const double a = 2 * std::log(2.0);
  NormData data{f64({2, 2}, {a, 0, -a, a}),
                f64({2, 2}, {1, 1, 2, 5}),
                f64({2}, {10, 3}),
                f64({2}, {1, -2}),
                {},
                0};
  data.more["alpha"] = f64({1}, {0.5});
  for (const std::string& backend : tested_backends()) {
    const NormResult got = run_norm(*make_backend(backend), dyt, data);
    const auto check = [&](const Tensor& value, const Tensor& expected) {
      check_close(value.to(DType::kF64), expected, 1e-6);
    };
    check(got.outputs[DytOutput::kY], f64({2, 2}, {7, -2, -5, -0.2}));
    // k = dy gain 16/25, or dy gain at 0: 6.4, 3, 12.8, 9.6.
    check(got.gradients[DytInput::kX], f64({2, 2}, {3.2, 1.5, 6.4, 4.8}));
    check(got.gradients[DytInput::kGain], f64({2}, {0.6 - 1.2, 3}));
    check(got.gradients[DytInput::kBias], f64({2}, {3, 6}));
    check(got.gradients[DytInput::kAlpha], f64({1}, {a * (6.4 - 12.8 + 9.6)}));
  }
}

TEST_CASE("dyt: several axes are one row") {
  const auto run = [&](bool flat) {
    OpCase c;
    c.inputs.push_back(random_normal({3, 2, 5}, 1));
    c.inputs.push_back(random_normal({2, 5}, 2));
    c.inputs.push_back(f64({1}, {0.75}));
    c.build = [flat](Graph& g, const std::vector<Value>& in) {
      if (!flat) return std::vector{ops::dyt(g, in[0], {in[1], {}}, in[2], {.axes = 2})};
      const Value y =
          ops::dyt(g, ops::reshape(g, in[0], {3, 10}), {ops::reshape(g, in[1], {10}), {}}, in[2]);
      return std::vector{ops::reshape(g, y, {3, 2, 5})};
    };
    return run_reference(c);
  };
  const Results whole = run(false), flat = run(true);
  for (const char* name : {"y0", "d0", "d1", "d2"}) check_close(whole.at(name), flat.at(name));
}

TEST_CASE("dyt: refusals") {
  const auto refused = [](const std::vector<TensorType>& inputs, const DytAttrs& attrs,
                          std::string_view message) {
    check_op_refused(
        inputs,
        [&](Graph& g, const std::vector<Value>& in) {
          const auto at = [&](std::size_t i) { return i < in.size() ? in[i] : Value{}; };
          return std::vector{ops::dyt(g, in[0], {at(2), at(3)}, at(1), attrs)};
        },
        "dyt", message);
  };
  const TensorType x{DType::kF32, {3, 4}}, one{DType::kF32, {1}}, four{DType::kF32, {4}};
  refused({{DType::kI32, {3, 4}}, one}, {}, "x: expected a floating type, got i32");
  refused({x, one}, {.axes = 3}, "axes: expected 1 to the rank of (3, 4), got 3");
  refused({x, one}, {.axes = 0}, "axes: expected 1 to the rank of (3, 4), got 0");
  refused({{DType::kF32, {3, 0}}, one}, {}, "x: expected at least one element a row, got (3, 0)");
  refused({x}, {}, "alpha: expected one number, got none");
  refused({x, four}, {}, "alpha: expected (1), got (4)");
  refused({x, {DType::kF64, {1}}}, {}, "alpha: expected f32, got f64");
  refused({x, one, {DType::kF32, {3}}}, {}, "gain: expected (4), got (3)");
  refused({x, one, four, {DType::kF32, {1, 4}}}, {}, "bias: expected (4), got (1, 4)");
}

}  // namespace keel::test
