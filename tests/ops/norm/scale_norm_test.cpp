// Scaled l2 norm: gradients, agreement of backends, worked example, the clamp, refusals.
#include "src/ops/norm/scale_norm.h"

#include <doctest/doctest.h>

#include <cmath>

#include "backends/backends.h"
#include "src/ops/layout.h"
#include "tests/support/checks.h"
#include "tests/support/gradcheck.h"
#include "tests/support/norm_golden.h"
#include "tests/support/norm_template.h"
#include "tests/support/tested_backends.h"

namespace keel::test {
namespace {

Value scale_norm(Graph& g, const NormInputs& in, double eps) {
  return ops::scale_norm(g, in.x, in.gain, {.eps = eps});
}

const NormSpec kScaleNorm{
    .build = scale_norm, .parameters = NormParameters::kOneGain, .centred = false};

// The rows (3, 4) * 1e-3, beyond eps 4e-3, and (3, 4) * 1e-4, within.
Build clamped(bool gain) {
  return [gain](Graph& g, const std::vector<Value>& in) {
    return std::vector{ops::scale_norm(g, in[0], gain ? in[1] : Value{}, {.eps = 4e-3})};
  };
}

OpCase clamped_case(bool gain) {
  OpCase c;
  c.inputs.push_back(f64({2, 2}, {3e-3, 4e-3, 3e-4, 4e-4}));
  c.inputs.push_back(f64({1}, {2}));
  c.build = clamped(gain);
  return c;
}

}  // namespace

TEST_CASE("scale_norm: the backward beside the clamp is the derivative") {
  for (bool gain : {false, true}) {
    gradcheck(clamped_case(gain), {.step = 1e-7, .tolerance = 1e-6, .skip = {}});
  }
}

TEST_CASE("scale_norm: a row of length eps or less is divided by eps") {
  const Tensor expected = f64({2, 2}, {1.2, 1.6, 0.15, 0.2});
  check_close(run_reference(clamped_case(true)).at("y0"), expected);
  for (bool gain : {false, true}) {
    const Results judge = run_reference(clamped_case(gain));
    const Results got = run_case(*make_backend(default_backend()), clamped_case(gain), DType::kF32);
    for (const char* name : {"y0", "d0", "d1"}) {
      check_close(got.at(name).to(DType::kF64), judge.at(name), 1e-6);
    }
  }
}

TEST_CASE("scale_norm: what every norm promises" * doctest::test_suite("slow")) {
  check_norm(kScaleNorm);
  check_case(kScaleNorm, {.groups = 65, .n = 37, .gain = false});
}

TEST_CASE("scale_norm: worked example") {
  const NormData data{golden("inputs", "x"), golden("inputs", "dy"), f64({1}, {2}), {}, {}, 1e-5};
  for (const std::string& backend : tested_backends()) {
    const NormResult got = run_norm(*make_backend(backend, {2}), scale_norm, data);
    const auto check = [&](const Tensor& value, std::string_view key) {
      check_close(value.to(DType::kF64), golden("ScaleNorm g=2", key), 1e-6);
    };
    check(got.outputs[ScaleNormOutput::kY], "y");
    check(got.gradients[ScaleNormGradient::kDx], "dx");
    check(got.gradients[ScaleNormGradient::kDgain], "dg");
  }
}

TEST_CASE("scale_norm: several axes are one row") {
  const auto run = [&](bool flat) {
    OpCase c;
    c.inputs.push_back(random_normal({3, 2, 5}, 1));
    c.inputs.push_back(f64({1}, {1.75}));
    c.build = [flat](Graph& g, const std::vector<Value>& in) {
      const Value x = flat ? ops::reshape(g, in[0], {3, 10}) : in[0];
      const Value y = ops::scale_norm(g, x, in[1], {.axes = flat ? 1 : 2});
      return std::vector{ops::reshape(g, y, {3, 2, 5})};
    };
    return run_reference(c);
  };
  const Results whole = run(false), flat = run(true);
  for (const char* name : {"y0", "d0", "d1"}) check_close(whole.at(name), flat.at(name));
}

TEST_CASE("scale_norm: refusals") {
  const auto refused = [](const std::vector<TensorType>& inputs, const ScaleNormAttrs& attrs,
                          std::string_view message) {
    check_op_refused(
        inputs,
        [&](Graph& g, const std::vector<Value>& in) {
          const Value gain = in.size() > 1 ? in[1] : Value{};
          return std::vector{ops::scale_norm(g, in[0], gain, attrs)};
        },
        "scale_norm", message);
  };
  const TensorType x{DType::kF32, {3, 4}};
  refused({{DType::kI32, {3, 4}}}, {}, "x: expected a floating type, got i32");
  refused({x}, {.axes = 3}, "axes: expected 1 to the rank of (3, 4), got 3");
  refused({x}, {.axes = 0}, "axes: expected 1 to the rank of (3, 4), got 0");
  refused({{DType::kF32, {3, 0}}}, {}, "x: expected at least one element a row, got (3, 0)");
  refused({x, {DType::kF32, {4}}}, {}, "gain: expected (1), got (4)");
  refused({x, {DType::kF32, {}}}, {}, "gain: expected (1), got ()");
  refused({x, {DType::kF64, {1}}}, {}, "gain: expected f32, got f64");
  refused({x}, {.eps = -1}, "eps: expected >= 0, got -1");
}

}  // namespace keel::test
