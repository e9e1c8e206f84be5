#include "frontend/data/permutation.h"

#include <numeric>
#include <utility>

#include "src/core/error.h"

namespace keel::data {

void shuffle(std::span<std::int64_t> numbers, const Philox& random) {
  check(numbers.size() < std::size_t{1} << 32, ErrorKind::kUsage,
        "[shuffle] expected fewer than 2^32 rows, got {}", numbers.size());
  for (std::size_t i = numbers.size(); i-- > 1;) {
    std::swap(numbers[i], numbers[random.below(i, static_cast<std::uint32_t>(i + 1))]);
  }
}

std::vector<std::int64_t> permutation(std::int64_t rows, const Philox& random) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(rows));
  std::iota(order.begin(), order.end(), 0);
  shuffle(order, random);
  return order;
}

}  // namespace keel::data
