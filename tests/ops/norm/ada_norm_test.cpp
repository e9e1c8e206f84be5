// AdaNorm: the promises of a row norm, worked examples, the means it is known for, refusals.
#include "src/ops/norm/ada_norm.h"

#include <doctest/doctest.h>

#include "backends/backends.h"
#include "src/ops/elementwise.h"
#include "src/ops/layout.h"
#include "src/ops/reduce.h"
#include "src/ops/stop_gradient.h"
#include "tests/support/checks.h"
#include "tests/support/gradcheck.h"
#include "tests/support/norm_checks.h"

namespace keel::test {
namespace {

constexpr AdaNormAttrs kPaper{.C = 2}, kRelease{.unbiased = true, .eps_outside = true, .C = 2},
    kNotDetached{.C = 0.3, .detach = false};

NormBuild ada_norm(AdaNormAttrs attrs) {
  return [attrs](Graph& g, const NormInputs& in, double eps) mutable {
    attrs.eps = eps;
    return ops::ada_norm(g, in.x, attrs);
  };
}

// The definition in elementary ops, phi constant where it is detached.
NormBuild composed(const AdaNormAttrs& attrs) {
  return [attrs](Graph& g, const NormInputs& in, double eps) {
    const double n = double(g.shape(in.x).back()), scale = 1 / (attrs.unbiased ? n - 1 : n);
    const Value deviation = ops::sub(g, in.x, ops::mean(g, in.x, {1}, true));
    const Value sum = ops::sum(g, ops::square(g, deviation), {1}, true);
    const Value s = attrs.eps_outside
                        ? ops::scale(g, ops::sqrt(g, ops::scale(g, sum, scale)), 1, eps)
                        : ops::sqrt(g, ops::scale(g, sum, scale, eps));
    const Value xhat = ops::div(g, deviation, s);
    const Value phi = ops::scale(g, xhat, -attrs.C * attrs.k, attrs.C);
    return ops::mul(g, attrs.detach ? ops::stop_gradient(g, phi) : phi, xhat);
  };
}

NormSpec ada_spec(const AdaNormAttrs& attrs) {
  return {.build = ada_norm(attrs),
          .composed = composed(attrs),
          .least_n = attrs.unbiased ? 2 : 1,
          .parameters = NormParameters::kNone};
}

}  // namespace

TEST_CASE("ada_norm: what every norm promises" * doctest::test_suite("slow")) {
  check_norm(ada_spec(kPaper));
}

TEST_CASE("ada_norm: the kinds of variance, phi detached or not" * doctest::test_suite("slow")) {
  for (AdaNormAttrs attrs : {kPaper, kNotDetached}) {
    for (bool unbiased : {false, true}) {
      for (bool eps_outside : {false, true}) {
        attrs.unbiased = unbiased;
        attrs.eps_outside = eps_outside;
        CAPTURE(fields_text(attrs));
        check_gradients(ada_spec(attrs));
        if (default_backend() != "reference" && unbiased == eps_outside) {
          check_few_cases(ada_spec(attrs));
        }
      }
    }
  }
}

TEST_CASE("ada_norm: worked examples") {
  check_golden({ada_norm(kPaper)}, "AdaNorm C=2 k=0.1", {"y", "dx"});
  check_golden({ada_norm(kRelease)}, "AdaNorm release-code", {"y", "dx"});
}

TEST_CASE("ada_norm: the gradient is exact when phi is not detached, and only then") {
  OpCase c;
  c.inputs.push_back(random_normal({3, 7}, 1, 0.5, 2));
  c.build = [](Graph& g, const std::vector<Value>& in) {
    return std::vector{ops::ada_norm(g, in[0], kNotDetached)};
  };
  gradcheck(c);
  const Tensor exact = std::move(run_reference(c).at("d0"));
  c.build = [](Graph& g, const std::vector<Value>& in) {
    return std::vector{ops::ada_norm(g, in[0], {.C = 0.3})};
  };
  CHECK(run_reference(c).at("d0").at(0) != doctest::Approx(exact.at(0)));
}

// xhat has mean 0 and mean square 1 for eps = 0, so that mean(y) = -C k, whatever x is.
TEST_CASE("ada_norm: the mean of a row is -C k; phi turns negative beyond 1 / k") {
  OpCase c;
  c.inputs.push_back(random_normal({5, 37}, 1, 100, 3));
  c.gradients = false;
  c.build = [](Graph& g, const std::vector<Value>& in) {
    const Value y = ops::ada_norm(g, in[0], {.eps = 0, .C = 3, .k = 0.25});
    return std::vector{ops::mean(g, y, {1})};
  };
  check_close(run_reference(c).at("y0"), random_normal({5}, 1, -0.75, 0));
  // One 1 among 400 zeros: xhat = 20 there.
  c.inputs[0] = Tensor(DType::kF64, {1, 401});
  c.inputs[0].as<double>()[7] = 1;
  c.build = [](Graph& g, const std::vector<Value>& in) {
    return std::vector{ops::ada_norm(g, in[0], {.eps = 0})};
  };
  CHECK(run_reference(c).at("y0").at(7) == doctest::Approx((1 - 2) * 20));
}

TEST_CASE("ada_norm: several axes are one row") {
  const auto run = [&](bool flat) {
    OpCase c;
    c.inputs.push_back(random_normal({3, 2, 5}, 1));
    c.build = [flat](Graph& g, const std::vector<Value>& in) {
      const Value x = flat ? ops::reshape(g, in[0], {3, 10}) : in[0];
      const Value y = ops::ada_norm(g, x, {.axes = flat ? 1 : 2});
      return std::vector{ops::reshape(g, y, {3, 2, 5})};
    };
    return run_reference(c);
  };
  const Results whole = run(false), flat = run(true);
  for (const char* name : {"y0", "d0"}) check_close(whole.at(name), flat.at(name));
}

TEST_CASE("ada_norm: refusals") {
  const auto refused = [](const TensorType& x, const AdaNormAttrs& attrs,
                          std::string_view message) {
    check_op_refused(
        {x},
        [&](Graph& g, const std::vector<Value>& in) {
          return std::vector{ops::ada_norm(g, in[0], attrs)};
        },
        "ada_norm", message);
  };
  const TensorType x{DType::kF32, {3, 4}};
  refused({DType::kI32, {3, 4}}, {}, "x: expected a floating type, got i32");
  refused(x, {.axes = 3}, "axes: expected 1 to the rank of (3, 4), got 3");
  refused(x, {.axes = 0}, "axes: expected 1 to the rank of (3, 4), got 0");
  refused({DType::kF32, {3, 0}}, {}, "x: expected at least one element a row, got (3, 0)");
  refused(x, {.eps = -1}, "eps: expected >= 0, got -1");
  refused({DType::kF32, {3, 1}}, {.unbiased = true}, "x: expected at least 2 elements");
}

}  // namespace keel::test
