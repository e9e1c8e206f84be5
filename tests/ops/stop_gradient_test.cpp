// Stop-gradient.
#include "src/ops/stop_gradient.h"

#include <doctest/doctest.h>

#include "src/ops/elementwise.h"
#include "tests/support/checks.h"

namespace keel::test {
namespace {

TEST_CASE("stop_gradient: passes the value and holds the gradient back") {
  OpCase c;
  c.inputs.push_back(random_normal({3}, 1));
  c.build = [](Graph& g, const std::vector<Value>& v) {
    return std::vector{ops::stop_gradient(g, v[0]),
                       ops::mul(g, v[0], ops::stop_gradient(g, ops::scale(g, v[0], 2)))};
  };
  const Results results = run_reference(c);
  check_close(results.at("y0"), c.inputs[0], 0);
  // Of x * 2x only the first factor moves; y0 does not move at all.
  const Tensor weights = random_normal({3}, 901);
  for (std::int64_t e = 0; e < 3; ++e) {
    CHECK(results.at("d0").at(e) == doctest::Approx(weights.at(e) * 2 * c.inputs[0].at(e)));
  }
}

}  // namespace
}  // namespace keel::test
