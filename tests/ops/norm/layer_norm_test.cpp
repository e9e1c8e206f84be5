// Layer norm: the promises of every norm, worked examples, options, refusals.
#include "src/ops/norm/layer_norm.h"

#include <doctest/doctest.h>

#include <cmath>

#include "backends/backends.h"
#include "bench/norm_errors.h"
#include "src/autodiff/gradient.h"
#include "src/ops/elementwise.h"
#include "src/ops/layout.h"
#include "src/ops/reduce.h"
#include "tests/support/checks.h"
#include "tests/support/gradcheck.h"
#include "tests/support/graph_runner.h"
#include "tests/support/norm_template.h"
#include "tests/support/thoroughness.h"

namespace keel::test {
namespace {

NormBuild layer_norm(LayerNormAttrs attrs = {}) {
  return [attrs](Graph& g, const NormInputs& in, double eps) mutable {
    attrs.eps = eps;
    return ops::layer_norm(g, in.x, {in.gain, in.bias}, attrs);
  };
}

Value layer_norm_simple(Graph& g, const NormInputs& in, double eps) {
  return ops::layer_norm(g, in.x, {}, {.eps = eps});
}

}  // namespace

TEST_CASE("layer_norm: what every norm promises" * doctest::test_suite("slow")) {
  check_norm({layer_norm()});
}

TEST_CASE("layer_norm: what every norm promises, unbiased with eps outside" *
          doctest::test_suite("slow")) {
  check_norm(
      {layer_norm({.unbiased = true, .eps_outside = true}), NormLayout::kRows, 0, nullptr, 2});
}

TEST_CASE("layer_norm: worked examples") {
  check_golden({layer_norm()}, "LayerNorm", {"y", "dx", "dgamma", "dbeta"});
  check_golden({layer_norm_simple}, "LN-simple", {"y", "dx"});
}

// All but two elements are +-1, their products with dy nearly cancel, and the rounding errors of
// the sum all have one sign; the two carry them into dx times sqrt(n / 2).
TEST_CASE("layer_norm: two elements that stand out of a long row cost dx no precision") {
  const NormCase c{.groups = is_emulated() ? 2 : 60, .n = 16384, .gain = false, .bias = false};
  const double far = double(float(std::sqrt(double(c.n) / 2)));
  NormData data = make_data(c);
  const Tensor z = random_normal(Shape{c.groups, 2}, 3);
  for (std::int64_t k = 0; k < c.groups; ++k) {
    const double a = double(float(1.5 + 0.25 * z.at(2 * k)));
    const double b = double(float(a * (1 + 1e-4 * z.at(2 * k + 1))));
    const double out = double(float((double(c.n) / 2 - 1) * (b - a) / far / 2));
    for (std::int64_t e = 0; e < c.n; ++e) {
      const bool is_out = e % (c.n / 2) == c.n / 2 - 1, is_first = e < c.n / 2;
      const auto at = std::size_t(c.at(k, e));
      data.x.as<double>()[at] = (is_first ? 1 : -1) * (is_out ? far : 1);
      data.dy.as<double>()[at] = is_out ? (is_first ? out : -out) : is_first ? a : b;
    }
  }
  const NormErrors errors =
      norm_errors(c, data, run_norm(*make_backend(default_backend(), {2}), layer_norm_simple, data),
                  run_norm(*make_backend("reference"), layer_norm_simple, data));
  CHECK(errors.forward <= kForwardBound);
  CHECK(errors.dx <= kBackwardBound);
}

TEST_CASE("layer_norm: several axes are one row") {
  const Tensor x = random_normal({3, 2, 5}, 1), gain = random_normal({2, 5}, 2);
  const auto run = [&](bool flat) {
    OpCase c;
    c.inputs.push_back(x.clone());
    c.inputs.push_back(gain.clone());
    c.build = [flat](Graph& g, const std::vector<Value>& in) {
      if (!flat) return std::vector{ops::layer_norm(g, in[0], {in[1], {}}, {.axes = 2})};
      const Value y = ops::layer_norm(g, ops::reshape(g, in[0], {3, 10}),
                                      {ops::reshape(g, in[1], {10}), {}}, {});
      return std::vector{ops::reshape(g, y, {3, 2, 5})};
    };
    return run_reference(c);
  };
  const Results whole = run(false), flat = run(true);
  for (const char* name : {"y0", "d0", "d1"}) check_close(whole.at(name), flat.at(name));
}

TEST_CASE("layer_norm: two norms that share a gain add their gradients") {
  OpCase c;
  for (const Shape& shape : {Shape{3, 5}, Shape{4, 5}, Shape{5}}) {
    c.inputs.push_back(random_normal(shape, std::uint32_t(c.inputs.size())));
  }
  c.build = [](Graph& g, const std::vector<Value>& in) {
    return std::vector{ops::layer_norm(g, in[0], {in[2], {}}),
                       ops::layer_norm(g, in[1], {in[2], {}})};
  };
  gradcheck(c);
}

TEST_CASE("layer_norm: the backward alone says whether dbias is wanted, for a bias is no input") {
  Graph g;
  const Value x = g.input("x", {DType::kF32, {3, 4}}), bias = g.input("bias", {DType::kF32, {4}});
  for (const Value& given : {bias, Value{}}) {
    const Value y = ops::layer_norm(g, x, {{}, given}), wrt[] = {x};
    const Value dx = gradient(g, ops::sum(g, y), wrt)[0];
    CHECK(g.node(y).attrs.text() == "axes=1 eps=1e-05 unbiased=false eps_outside=false");
    CHECK(g.node(dx).attrs.text() ==
          g.node(y).attrs.text() + (given.valid() ? " wants_dbias=true" : " wants_dbias=false"));
    CHECK(g.shape(dx.at(LayerNormGradient::kDbias)) == Shape{given.valid() ? 4 : 0});
  }
}

TEST_CASE("layer_norm: refusals") {
  const auto refused = [](const std::vector<TensorType>& inputs, const LayerNormAttrs& attrs,
                          std::string_view message) {
    check_op_refused(
        inputs,
        [&](Graph& g, const std::vector<Value>& in) {
          const Value gain = in.size() > 1 ? in[1] : Value{},
                      bias = in.size() > 2 ? in[2] : Value{};
          return std::vector{ops::layer_norm(g, in[0], {gain, bias}, attrs)};
        },
        "layer_norm", message);
  };
  const TensorType x{DType::kF32, {3, 4}}, four{DType::kF32, {4}};
  refused({{DType::kI32, {3, 4}}}, {}, "x: expected a floating type, got i32");
  refused({{DType::kF32, {}}}, {}, "axes: expected 1 to the rank of (), got 1");
  refused({x}, {.axes = 3}, "axes: expected 1 to the rank of (3, 4), got 3");
  refused({x}, {.axes = 0}, "axes: expected 1 to the rank of (3, 4), got 0");
  refused({{DType::kF32, {3, 0}}}, {}, "x: expected at least one element a row, got (3, 0)");
  refused({x, {DType::kF32, {3}}}, {}, "gain: expected (4), got (3)");
  refused({x, four, {DType::kF32, {1, 4}}}, {}, "bias: expected (4), got (1, 4)");
  refused({x, {DType::kF64, {4}}}, {}, "gain: expected f32, got f64");
  refused({x}, {.eps = -1}, "eps: expected >= 0, got -1");
  refused({{DType::kF32, {3, 1}}}, {.unbiased = true}, "x: expected at least 2 elements");
}

}  // namespace keel::test
