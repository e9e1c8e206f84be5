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

TEST_CASE("backend embedding_bag: sums at every width" * doctest::test_suite("slow")) {
  for_each_target([] {
    for (const std::int64_t width : kSizes) {
      CAPTURE(width);
      for (const std::int64_t places : {1, 12}) {
        const EmbeddingBagSizes sizes{width > 1000 ? 5 : 100, places, 17, width};
        const OpCase c = case_of(sizes, 7);
        check_within(run_tested(c).at("y0"), run_reference(c).at("y0"),
                     [&](auto) { return places == 1 ? 0.0 : compare::sum_bound(places) * 4; });
      }
    }
  });
}

TEST_CASE("backend embedding_bag: ids outside of their table give NaN") {
  OpCase c = case_of({6, 3, 4, 5}, 2);
  std::int32_t* ids = c.inputs[1].as<std::int32_t>().data();
  ids[0] = 1;
  ids[5] = 6;
  ids[7] = -2000000000;
  ids[10] = 2000000000;
  const Results got = run_tested(c), expected = run_reference(c);
  for (std::int64_t row = 0; row < 6; ++row) {
    CHECK(std::isnan(got.at("y0").at(row * 5)) == (row < 4));
  }
  check_within(got.at("y0"), expected.at("y0"), [](auto) { return compare::sum_bound(3) * 4; });
}

TEST_CASE("backend embedding_bag: results do not depend on the thread count") {
  check_thread_counts(case_of({4099, 7, 300, 65}, 0));
}

}  // namespace
}  // namespace keel::test
