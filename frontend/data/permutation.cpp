#include "frontend/data/permutation.h"

#include <numeric>

namespace keel::data {

std::vector<std::int64_t> permutation(std::int64_t rows, const Philox& random) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(rows));
  std::iota(order.begin(), order.end(), 0);
  shuffle(order, random);
  return order;
}

}  // namespace keel::data
