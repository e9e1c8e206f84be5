// Root mean square norm: gradients, agreement of backends, worked example, options, refusals.
#include "src/ops/norm/rms_norm.h"

#include <doctest/doctest.h>

#include <cmath>

#include "src/ops/layout.h"
#include "tests/support/checks.h"
#include "tests/support/gradcheck.h"
#include "tests/support/norm_checks.h"

namespace keel::test {
namespace {

Value rms_norm(Graph& g, const NormInputs& in, double eps) {
  return ops::rms_norm(g, in.x, {in.gain, in.bias}, {.eps = eps});
}

const NormSpec kRmsNorm{.build = rms_norm, .centred = false};

}  // namespace

TEST_CASE("rms_norm: what every norm promises" * doctest::test_suite("slow")) {
  check_norm(kRmsNorm);
}

// CUDA cuts so wide rows into 12 chunks, whose blocks add up 32 rows in float at a time.
TEST_CASE("rms_norm: dgain and dbias of many wide rows") {
  if (default_backend() == "reference") return;
  const NormCase c{.groups = 420, .n = 8192, .gain = true, .bias = true};
  check_case(kRmsNorm, c);
}

TEST_CASE("rms_norm: worked example") {
  const auto without_bias = [](Graph& g, const NormInputs& in, double eps) {
    return ops::rms_norm(g, in.x, {in.gain, {}}, {.eps = eps});
  };
  check_golden({without_bias}, "RMSNorm", {"y", "dx", "dgamma"});
}

TEST_CASE("rms_norm: eps is inside the root, 1e-8 unless told") {
  OpCase c;
  c.inputs.push_back(f64({2, 2}, {0, 0, 3e-4, 4e-4}));
  c.build = [](Graph& g, const std::vector<Value>& in) {
    const Value y = ops::rms_norm(g, in[0], {});
    return std::vector{y, y.at(RmsNormOutput::kRstd)};
  };
  c.gradients = false;
  const Results results = run_reference(c);
  const double rstd = 1 / std::sqrt(12.5e-8 + 1e-8);
  check_close(results.at("y0"), f64({2, 2}, {0, 0, 3e-4 * rstd, 4e-4 * rstd}));
  check_close(results.at("y1"), f64({2}, {1e4, rstd}));
}

// Gains that are kept as gain - 1, beside the same without an offset.
Value offset_rms_norm(Graph& g, const NormInputs& in, double eps) {
  return ops::rms_norm(g, in.x, {in.gain, in.bias}, {.eps = eps, .offset = 1});
}

TEST_CASE("rms_norm: an offset is added to the gain, forward and backward") {
  for (const auto& [groups, n] : {std::pair{9, 37}, {65, 257}, {7, 8192}, {3, 20000}}) {
    const NormCase c{.groups = groups, .n = n, .gain = true, .bias = true};
    const NormSpec offset{.build = offset_rms_norm, .centred = false};
    NormData whole = make_data(c), less = make_data(c);
    for (double& gain : less.gain->as<double>()) gain = double(float(gain - 1));
    if (default_backend() != "reference") check_data(offset, c, less);
    for (std::int64_t i = 0; i < n; ++i)
      whole.gain->as<double>()[std::size_t(i)] = 1 + less.gain->at(i);
    const NormResult got = run_reference(offset, less), expected = run_reference(kRmsNorm, whole);
    check_close(got.outputs[RmsNormOutput::kY], expected.outputs[RmsNormOutput::kY]);
    for (const auto place : {RmsNormGradient::kDx, RmsNormGradient::kDgain}) {
      check_close(got.gradients[place], expected.gradients[place]);
    }
  }
  OpCase c;
  c.inputs.push_back(random_normal({3, 7}, 1, 0.5, 2));
  c.inputs.push_back(random_normal({7}, 2));
  c.build = [](Graph& g, const std::vector<Value>& in) {
    return std::vector{ops::rms_norm(g, in[0], {in[1], {}}, {.eps = 1e-2, .offset = -0.75})};
  };
  gradcheck(c);
}

TEST_CASE("rms_norm: several axes are one row") {
  const auto run = [&](bool flat) {
    OpCase c;
    c.inputs.push_back(random_normal({3, 2, 5}, 1));
    c.inputs.push_back(random_normal({2, 5}, 2));
    c.build = [flat](Graph& g, const std::vector<Value>& in) {
      if (!flat) return std::vector{ops::rms_norm(g, in[0], {in[1], {}}, {.axes = 2})};
      const Value y =
          ops::rms_norm(g, ops::reshape(g, in[0], {3, 10}), {ops::reshape(g, in[1], {10}), {}});
      return std::vector{ops::reshape(g, y, {3, 2, 5})};
    };
    return run_reference(c);
  };
  const Results whole = run(false), flat = run(true);
  for (const char* name : {"y0", "d0", "d1"}) check_close(whole.at(name), flat.at(name));
}

TEST_CASE("rms_norm: refusals") {
  const auto refused = [](const std::vector<TensorType>& inputs, const RmsNormAttrs& attrs,
                          std::string_view message) {
    check_op_refused(
        inputs,
        [&](Graph& g, const std::vector<Value>& in) {
          const Value gain = in.size() > 1 ? in[1] : Value{},
                      bias = in.size() > 2 ? in[2] : Value{};
          return std::vector{ops::rms_norm(g, in[0], {gain, bias}, attrs)};
        },
        "rms_norm", message);
  };
  const TensorType x{DType::kF32, {3, 4}}, four{DType::kF32, {4}};
  refused({{DType::kI32, {3, 4}}}, {}, "x: expected a floating type, got i32");
  refused({x}, {.axes = 3}, "axes: expected 1 to the rank of (3, 4), got 3");
  refused({x}, {.axes = 0}, "axes: expected 1 to the rank of (3, 4), got 0");
  refused({{DType::kF32, {3, 0}}}, {}, "x: expected at least one element a row, got (3, 0)");
  refused({x, {DType::kF32, {3}}}, {}, "gain: expected (4), got (3)");
  refused({x, four, {DType::kF32, {1, 4}}}, {}, "bias: expected (4), got (1, 4)");
  refused({x, {DType::kF64, {4}}}, {}, "gain: expected f32, got f64");
  refused({x}, {.eps = -1}, "eps: expected >= 0, got -1");
}

}  // namespace keel::test
