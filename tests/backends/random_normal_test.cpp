// Standard normal numbers in rows of every width.
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

TEST_CASE("backend random_normal: every narrow width, no rows, and the last row") {
  for_each_target([] {
    for (std::int64_t width = 1; width <= 70; ++width) check_agrees(normal_case({7, width}));
    check_agrees(normal_case({}));
    check_agrees(normal_case({0, 4}));
    check_agrees(normal_case({5, 33}, std::numeric_limits<std::int32_t>::max()));
  });
}

}  // namespace
}  // namespace keel::test
