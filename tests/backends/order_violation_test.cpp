// Errors of an order between points, against the reference backend.
#include "src/ops/order_violation.h"

#include <cmath>

#include "tests/backends/kernel_checks.h"

namespace keel::test {
namespace {

OpCase error_case(const OrderViolationSizes& sizes) {
  OpCase c;
  c.inputs.push_back(random_f32({sizes.n, sizes.width}, 1));
  c.inputs.push_back(random_f32({sizes.m, sizes.width}, 2));
  c.build = [](Graph& g, const std::vector<Value>& v) {
    return std::vector{ops::order_violation(g, v[0], v[1])};
  };
  return c;
}

TEST_CASE("backend order_violation: accurate for any number of points") {
  for (const OrderViolationSizes& sizes :
       {OrderViolationSizes{1, 1, 8}, {129, 1, 8}, {1, 129, 8}, {130, 65, 40}}) {
    check_agrees(error_case(sizes));
  }
}

TEST_CASE("backend order_violation: NaN is met by NaN, and pairs without a gradient do not count") {
  OpCase c = error_case({3, 2, 5});
  c.inputs[0].as<double>()[7] = NAN;
  check_agrees(c);
  CHECK(std::isnan(run_tested(c).at("y0").at(2)));
}

}  // namespace
}  // namespace keel::test
