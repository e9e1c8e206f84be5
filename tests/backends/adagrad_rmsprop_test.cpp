// Adagrad and the RMSProp of Graves against the reference backend.
#include <limits>

#include "src/ops/optimizer_step.h"
#include "tests/backends/optimizer_cases.h"

namespace keel::test {
namespace {

// The state h is the input v.
OpCase adagrad_case(std::int64_t n, double scale, const AdagradAttrs& attrs) {
  OpCase c;
  c.inputs = update_inputs(n, scale);
  c.gradients = false;
  c.build = [attrs](Graph& g, const std::vector<Value>& v) {
    const Value p = ops::adagrad_step(g, {v[0], v[1], v[4], v[6], v[3]}, attrs);
    return std::vector{p, p.at(1)};
  };
  return c;
}

// n = v + q^2 with q = m, so that the variance is no less than v; d = g.
OpCase graves_case(std::int64_t n, double scale, const GravesAttrs& attrs) {
  OpCase c;
  c.inputs = update_inputs(n, scale);
  for (std::int64_t i = 0; i < n; ++i) {
    const double q = c.inputs[2].at(i);
    c.inputs[3].as<double>()[std::size_t(i)] = float(c.inputs[3].at(i) + q * q);
  }
  c.gradients = false;
  c.build = [attrs](Graph& g, const std::vector<Value>& v) {
    const Value p = ops::rmsprop_step(g, {v[0], v[1], v[4], v[6], v[3], v[2], v[1]}, attrs);
    return std::vector{p, p.at(1), p.at(2), p.at(3)};
  };
  return c;
}

// How far r g' / sqrt(x + eps) is off when x is by `error`: the root halves its relative error; the
// rate, eps, the sum, the root, a product and the quotient are rounded.
double quotient_error(double rate, const Gradient& g, double x, double error) {
  const double relative = error / (2 * x) + 7 * kEps;
  return rate / std::sqrt(x) * (g.error + std::abs(g.value) * relative);
}

void check_adagrad(std::int64_t n, const AdagradAttrs& attrs) {
  const OpCase c = adagrad_case(n, -1.7f, attrs);
  const Results got = run_tested(c), expected = run_reference(c);
  const double rate = kLr * attrs.lr_scale;
  const auto of_h = [&](std::int64_t i) {
    const Gradient g = gradient_of(c, i, attrs.weight_decay);
    return 2.1 * g.size * g.error + kEps * (g.size * g.size + expected.at("y1").at(i));
  };
  check_within(got.at("y1"), expected.at("y1"), of_h);
  check_within(got.at("y0"), expected.at("y0"), [&](auto i) {
    const Gradient g = gradient_of(c, i, attrs.weight_decay);
    const double x = expected.at("y1").at(i) + attrs.eps;
    return quotient_error(rate, g, x, of_h(i)) + kEps * std::abs(expected.at("y0").at(i));
  });
}

TEST_CASE("backend optimizer: adagrad at every size") {
  for_each_target([] {
    for (const std::int64_t n : kSizes) {
      CAPTURE(n);
      check_adagrad(n, {});
      check_adagrad(n, {.eps = 0.1, .weight_decay = 0.1, .lr_scale = 0.3});
    }
  });
}

void check_graves(std::int64_t size, const GravesAttrs& attrs) {
  const OpCase c = graves_case(size, 0.37, attrs);
  const Results got = run_tested(c), expected = run_reference(c);
  const double share = 1 - attrs.keep, rate = kLr * attrs.lr_scale;
  // These are the bounds of adam's v and m.
  const auto of_n = [&](std::int64_t i) {
    const Gradient g = gradient_of(c, i, attrs.weight_decay);
    return share * g.error * 2.1 * g.size +
           kEps * (3 * c.inputs[3].at(i) + 5 * share * g.size * g.size);
  };
  const auto of_q = [&](std::int64_t i) {
    const Gradient g = gradient_of(c, i, attrs.weight_decay);
    return share * g.error + 3 * kEps * (std::abs(c.inputs[2].at(i)) + share * g.size);
  };
  const auto of_d = [&](std::int64_t i) {
    const double n = expected.at("y1").at(i), q = expected.at("y2").at(i);
    const double of_var = of_n(i) + 2.1 * std::abs(q) * of_q(i) + kEps * (q * q + std::abs(n));
    return quotient_error(rate, gradient_of(c, i, attrs.weight_decay), n - q * q + attrs.eps,
                          of_var) +
           kEps * (2 * attrs.momentum * std::abs(c.inputs[1].at(i)) +
                   std::abs(expected.at("y3").at(i)));
  };
  check_within(got.at("y1"), expected.at("y1"), of_n);
  check_within(got.at("y2"), expected.at("y2"), of_q);
  check_within(got.at("y3"), expected.at("y3"), of_d);
  check_within(got.at("y0"), expected.at("y0"),
               [&](auto i) { return of_d(i) + kEps * std::abs(expected.at("y0").at(i)); });
}

TEST_CASE("backend optimizer: rmsprop of Graves at every size") {
  for_each_target([] {
    for (const std::int64_t n : kSizes) {
      CAPTURE(n);
      check_graves(n, {.eps = 0.05});
      check_graves(
          n, {.keep = 0.5, .momentum = 0.5, .eps = 0.1, .weight_decay = 0.1, .lr_scale = 0.3});
    }
  });
}

TEST_CASE("backend optimizer: a variance that rounding has put below 0 counts as 0") {
  OpCase c = graves_case(100, 0, {});
  for (double& n : c.inputs[3].as<double>()) n = 1;
  for (double& q : c.inputs[2].as<double>()) q = 1.1;
  for (const Results& results : {run_tested(c), run_reference(c)}) {
    CHECK(results.at("y0").at(7) == doctest::Approx(c.inputs[0].at(7) + 0.9 * c.inputs[1].at(7)));
  }
}

TEST_CASE("backend optimizer: a scale that is not finite leaves adagrad and Graves as they are") {
  for (const double scale : {double(NAN), std::numeric_limits<double>::infinity()}) {
    const OpCase adagrad = adagrad_case(1000, scale, {}), graves = graves_case(1000, scale, {});
    const Results by_adagrad = run_tested(adagrad), by_graves = run_tested(graves);
    const auto no_error = [](auto) { return 0.0; };
    check_within(by_adagrad.at("y0"), adagrad.inputs[0], no_error);
    check_within(by_adagrad.at("y1"), adagrad.inputs[3], no_error);
    check_within(by_graves.at("y0"), graves.inputs[0], no_error);
    check_within(by_graves.at("y1"), graves.inputs[3], no_error);
    check_within(by_graves.at("y2"), graves.inputs[2], no_error);
    check_within(by_graves.at("y3"), graves.inputs[1], no_error);
  }
}

TEST_CASE("backend optimizer: adagrad and Graves do not depend on the thread count") {
  check_thread_counts(adagrad_case(100003, 0.5, {.weight_decay = 0.1}));
  check_thread_counts(graves_case(100003, 0.5, {.weight_decay = 0.1}));
}

}  // namespace
}  // namespace keel::test
