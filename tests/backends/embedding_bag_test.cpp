// Lookups that are added up: what the contract says, in its order.
#include "src/ops/embedding_bag.h"

#include <cmath>

#include "tests/backends/kernel_checks.h"

namespace keel::test {
namespace {

OpCase case_of(const EmbeddingBagSizes& sizes, std::int64_t first) {
  OpCase c;
  c.gradients = false;
  c.inputs.push_back(random_f32({sizes.places, sizes.vocabulary, sizes.width}, 1));
  Tensor numbers(DType::kI32, {sizes.rows, sizes.places});
  const Philox random(4, 2);
  std::uint64_t i = 0;
  for (std::int32_t& id : numbers.as<std::int32_t>()) {
    id = std::int32_t(first + random.below(i++, std::uint32_t(sizes.vocabulary)));
  }
  c.inputs.push_back(std::move(numbers));
  c.build = [first](Graph& g, const std::vector<Value>& v) {
    return std::vector{ops::embedding_bag(g, v[0], v[1], first)};
  };
  return c;
}

TEST_CASE("backend embedding_bag: ids outside of their table give NaN") {
  OpCase c = case_of({6, 3, 4, 5}, 2);
  std::int32_t* ids = c.inputs[1].as<std::int32_t>().data();
  ids[0] = 1;
  ids[5] = 6;
  ids[7] = -2000000000;
  ids[10] = 2000000000;
  const Results got = run_tested(c);
  for (std::int64_t row = 0; row < 6; ++row) {
    CHECK(std::isnan(got.at("y0").at(row * 5)) == (row < 4));
  }
  check_agrees(c);
}

}  // namespace
}  // namespace keel::test
