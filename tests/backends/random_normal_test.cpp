// Standard normal numbers on the backend under test, within the error that the contract states.
#include "src/ops/random_normal.h"

#include "tests/backends/kernel_checks.h"

namespace keel::test {
namespace {

OpCase normal_case(const Shape& shape, std::int32_t first_row = 48) {
  OpCase c;
  for (std::int32_t i : {12345, first_row}) c.inputs.push_back(Tensor::of<std::int32_t>({}, {i}));
  c.gradients = false;
  c.build = [shape](Graph& g, const std::vector<Value>& v) {
    return std::vector{ops::random_normal(g, {DType::kF32, shape}, {v[0], v[1]}, -7)};
  };
  return c;
}

void check_normal(const OpCase& c) {
  const Results got = run_tested(c), expected = run_reference(c);
  check_within(got.at("y0"), expected.at("y0"), [](auto) { return 30 * kEps; });
}

TEST_CASE("backend random_normal: every width and number of rows") {
  for_each_target([] {
    for (const std::int64_t n : kSizes) {
      CAPTURE(n);
      check_normal(normal_case({3, n}));
      check_normal(normal_case({n}));
      if (n < 5000) check_normal(normal_case({n, 3, 3}));
    }
    for (std::int64_t width = 1; width <= 70; ++width) check_normal(normal_case({7, width}));
    check_normal(normal_case({}));
    check_normal(normal_case({0, 4}));
    check_normal(normal_case({5, 33}, std::numeric_limits<std::int32_t>::max()));
  });
}

TEST_CASE("backend random_normal: results do not depend on the thread count") {
  check_thread_counts(normal_case({1, 100003}));
  check_thread_counts(normal_case({1003, 99}));
}

}  // namespace
}  // namespace keel::test
