// Dynamic erf: gradients, values by hand, agreement of backends, refusals.
#include "src/ops/norm/derf.h"

#include <doctest/doctest.h>

#include <cmath>

#include "src/ops/layout.h"
#include "tests/support/checks.h"
#include "tests/support/curve_checks.h"

namespace keel::test {
namespace {

Value derf(Graph& g, const NormInputs& in, double) {
  return ops::derf(g, in.x, {in.gain, in.bias}, {in.more.at("alpha"), in.more.at("shift")});
}

const CurveNorm kDerfNorm{derf, {"alpha", "shift"}};

}  // namespace

TEST_CASE("derf: the backward is the derivative") { check_curve_gradients(kDerfNorm); }

TEST_CASE("derf: the backend keeps the promises of a row norm" * doctest::test_suite("slow")) {
  if (default_backend() == "reference") return;
  const NormSpec row = curve_spec(kDerfNorm, 0.5, 0.125);
  SUBCASE("agreement") { check_curve_agrees(kDerfNorm); }
  SUBCASE("any thread count") { check_threads(row); }
  SUBCASE("in place") { check_in_place(row); }
  SUBCASE("any order and split of rows") { check_rows(row); }
  SUBCASE("special values") { check_curve_specials(kDerfNorm); }
  SUBCASE("a gain without a bias, a bias without a gain, neither") {
    for (const auto& [gain, bias] : {std::pair{true, false}, {false, true}, {false, false}}) {
      const NormCase c{.groups = 65, .n = 37, .gain = gain, .bias = bias};
      check_case(row, c);
    }
  }
}

// erf(1/2) = 0.5205; its derivative is exp(-1/4) 2 / sqrt(pi) there, and 2 / sqrt(pi) at 0.
TEST_CASE("derf: values by hand") {
  NormData data{f64({2, 2}, {0.5, -0.5, 0.5, 1.5}),
                f64({2, 2}, {1, 1, 2, 5}),
                f64({2}, {10, 2}),
                f64({2}, {1, -2}),
                {},
                0};
  data.more["alpha"] = f64({1}, {0.5});
  data.more["shift"] = f64({1}, {-0.25});
  const double f = 0.5204998778130465, top = 1.1283791670955126, side = 0.8787825789354448;
  for (const std::string& backend : tested_backends()) {
    const NormResult got = run_norm(*make_backend(backend), derf, data);
    const auto check = [&](const Tensor& value, const Tensor& expected) {
      check_close(value.to(DType::kF64), expected, 1e-6);
    };
    // u = 0, -1/2, 0, 1/2.
    check(got.outputs[DerfOutput::kY], f64({2, 2}, {1, -2 - 2 * f, 1, -2 + 2 * f}));
    const double k[] = {10 * top, 2 * side, 20 * top, 10 * side};
    check(got.gradients[DerfInput::kX], f64({2, 2}, {k[0] / 2, k[1] / 2, k[2] / 2, k[3] / 2}));
    check(got.gradients[DerfInput::kGain], f64({2}, {0, 4 * f}));
    check(got.gradients[DerfInput::kBias], f64({2}, {3, 6}));
    check(got.gradients[DerfInput::kAlpha],
          f64({1}, {0.5 * k[0] - 0.5 * k[1] + 0.5 * k[2] + 1.5 * k[3]}));
    check(got.gradients[DerfInput::kShift], f64({1}, {k[0] + k[1] + k[2] + k[3]}));
  }
}

TEST_CASE("derf: without a shift it is one of 0") {
  const auto run = [](bool has_shift) {
    OpCase c;
    c.inputs.push_back(random_normal({3, 7}, 1));
    c.inputs.push_back(f64({1}, {0.75}));
    c.inputs.push_back(f64({1}, {0}));
    c.build = [has_shift](Graph& g, const std::vector<Value>& in) {
      return std::vector{ops::derf(g, in[0], {}, {in[1], has_shift ? in[2] : Value{}})};
    };
    return run_reference(c);
  };
  const Results with = run(true), without = run(false);
  for (const char* name : {"y0", "d0", "d1"}) check_close(without.at(name), with.at(name));
}

TEST_CASE("derf: several axes are one row") {
  const auto run = [&](bool flat) {
    OpCase c;
    c.inputs.push_back(random_normal({3, 2, 5}, 1));
    c.inputs.push_back(random_normal({2, 5}, 2));
    c.inputs.push_back(f64({1}, {0.75}));
    c.build = [flat](Graph& g, const std::vector<Value>& in) {
      if (!flat) return std::vector{ops::derf(g, in[0], {in[1], {}}, {in[2], {}}, {.axes = 2})};
      const Value y = ops::derf(g, ops::reshape(g, in[0], {3, 10}),
                                {ops::reshape(g, in[1], {10}), {}}, {in[2], {}});
      return std::vector{ops::reshape(g, y, {3, 2, 5})};
    };
    return run_reference(c);
  };
  const Results whole = run(false), flat = run(true);
  for (const char* name : {"y0", "d0", "d1", "d2"}) check_close(whole.at(name), flat.at(name));
}

TEST_CASE("derf: refusals") {
  const auto refused = [](const std::vector<TensorType>& inputs, const DerfAttrs& attrs,
                          std::string_view message) {
    check_op_refused(
        inputs,
        [&](Graph& g, const std::vector<Value>& in) {
          const auto at = [&](std::size_t i) { return i < in.size() ? in[i] : Value{}; };
          return std::vector{ops::derf(g, in[0], {at(2), at(3)}, {at(1), at(4)}, attrs)};
        },
        "derf", message);
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
  refused({x, one, four, four, four}, {}, "shift: expected (1), got (4)");
}

}  // namespace keel::test
