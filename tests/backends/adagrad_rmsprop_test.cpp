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

}  // namespace
}  // namespace keel::test
