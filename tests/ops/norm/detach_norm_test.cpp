// DetachNorm, DetachMean, DetachVariance: the promises of a row norm, worked examples, refusals.
#include "src/ops/norm/detach_norm.h"

#include <doctest/doctest.h>

#include "backends/backends.h"
#include "src/ops/elementwise.h"
#include "src/ops/layout.h"
#include "src/ops/reduce.h"
#include "src/ops/stop_gradient.h"
#include "tests/support/checks.h"
#include "tests/support/norm_checks.h"

namespace keel::test {
namespace {

constexpr DetachNormAttrs kDetachBoth{}, kDetachMean{.detach_variance = false},
    kDetachVariance{.detach_mean = false};

NormBuild detach_norm(DetachNormAttrs attrs) {
  return [attrs](Graph& g, const NormInputs& in, double eps) mutable {
    attrs.eps = eps;
    return ops::detach_norm(g, in.x, attrs);
  };
}

// The definition in elementary ops, constant where it is detached.
NormBuild composed(const DetachNormAttrs& attrs) {
  return [attrs](Graph& g, const NormInputs& in, double eps) {
    const auto constant_if = [&](bool is_constant, Value v) {
      return is_constant ? ops::stop_gradient(g, v) : v;
    };
    const double n = double(g.shape(in.x).back());
    const Value mean = ops::mean(g, in.x, {1}, true);
    const Value deviation = ops::sub(g, in.x, constant_if(attrs.detach_mean, mean));
    const Value sum = ops::sum(g, ops::square(g, ops::sub(g, in.x, mean)), {1}, true);
    const double scale = 1 / (attrs.unbiased ? n - 1 : n);
    const Value s = attrs.eps_outside
                        ? ops::scale(g, ops::sqrt(g, ops::scale(g, sum, scale)), 1, eps)
                        : ops::sqrt(g, ops::scale(g, sum, scale, eps));
    return ops::div(g, deviation, constant_if(attrs.detach_variance, s));
  };
}

NormSpec detach_spec(const DetachNormAttrs& attrs) {
  return {.build = detach_norm(attrs),
          .composed = composed(attrs),
          .least_n = attrs.unbiased ? 2 : 1,
          .parameters = NormParameters::kNone};
}

}  // namespace

// DetachMean has the longest backward.
TEST_CASE("detach_norm: what every norm promises" * doctest::test_suite("slow")) {
  check_norm(detach_spec(kDetachMean));
}

TEST_CASE("detach_norm: what is detached, and the kinds of variance" *
          doctest::test_suite("slow")) {
  for (DetachNormAttrs attrs : {kDetachBoth, kDetachMean, kDetachVariance}) {
    for (bool unbiased : {false, true}) {
      for (bool eps_outside : {false, true}) {
        attrs.unbiased = unbiased;
        attrs.eps_outside = eps_outside;
        CAPTURE(fields_text(attrs));
        check_gradients(detach_spec(attrs));
        if (default_backend() != "reference" && unbiased == eps_outside) {
          check_few_cases(detach_spec(attrs));
        }
      }
    }
  }
}

TEST_CASE("detach_norm: worked examples") {
  check_golden({detach_norm(kDetachBoth)}, "LN-simple", {"y"});
  check_golden({detach_norm(kDetachBoth)}, "DetachNorm", {"dx"});
  check_golden({detach_norm(kDetachMean)}, "DetachMean", {"dx"});
  check_golden({detach_norm(kDetachVariance)}, "DetachVariance", {"dx"});
}

TEST_CASE("detach_norm: several axes are one row") {
  for (DetachNormAttrs attrs : {kDetachBoth, kDetachMean, kDetachVariance}) {
    const auto run = [&](bool flat) {
      OpCase c;
      c.inputs.push_back(random_normal({3, 2, 5}, 1));
      c.build = [flat, attrs](Graph& g, const std::vector<Value>& in) mutable {
        attrs.axes = flat ? 1 : 2;
        const Value x = flat ? ops::reshape(g, in[0], {3, 10}) : in[0];
        return std::vector{ops::reshape(g, ops::detach_norm(g, x, attrs), {3, 2, 5})};
      };
      return run_reference(c);
    };
    const Results whole = run(false), flat = run(true);
    for (const char* name : {"y0", "d0"}) check_close(whole.at(name), flat.at(name));
  }
}

TEST_CASE("detach_norm: x is not kept for the backward when the variance is detached") {
  Graph g;
  const Value x = g.input("x", {DType::kF32, {3, 4}});
  for (const DetachNormAttrs& attrs : {kDetachBoth, kDetachMean, kDetachVariance}) {
    const Value y = ops::detach_norm(g, x, attrs);
    const Value dy[] = {y, {}, {}};
    const bool needed[] = {true};
    StateValues states;
    BackwardContext context(g, y.node, dy, needed, states);
    kDetachNorm.backward(context);
    const Node& backward = g.node(context.result()[0]);
    CHECK(backward.inputs[DetachNormBackwardInput::kX].valid() == !attrs.detach_variance);
    CHECK(backward.inputs[DetachNormBackwardInput::kMean].valid() == !attrs.detach_variance);
  }
}

TEST_CASE("detach_norm: refusals") {
  const auto refused = [](const TensorType& x, const DetachNormAttrs& attrs,
                          std::string_view message) {
    check_op_refused(
        {x},
        [&](Graph& g, const std::vector<Value>& in) {
          return std::vector{ops::detach_norm(g, in[0], attrs)};
        },
        "detach_norm", message);
  };
  const TensorType x{DType::kF32, {3, 4}};
  refused({DType::kI32, {3, 4}}, {}, "x: expected a floating type, got i32");
  refused(x, {.axes = 3}, "axes: expected 1 to the rank of (3, 4), got 3");
  refused(x, {.axes = 0}, "axes: expected 1 to the rank of (3, 4), got 0");
  refused({DType::kF32, {3, 0}}, {}, "x: expected at least one element a row, got (3, 0)");
  refused(x, {.eps = -1}, "eps: expected >= 0, got -1");
  refused({DType::kF32, {3, 1}}, {.unbiased = true}, "x: expected at least 2 elements");
  refused(x, {.detach_mean = false, .detach_variance = false},
          "detach_mean, detach_variance: expected at least one, got none");
}

}  // namespace keel::test
