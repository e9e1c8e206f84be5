#include "frontend/data/draw.h"

#include <algorithm>

namespace keel::data {

Zipf::Zipf(int n) {
  double sum = 0;
  for (int rank = 1; rank <= n; ++rank) sums_.push_back(sum += 1.0 / rank);
}

int Zipf::rank(Draw& draw) const {
  const auto above = std::ranges::upper_bound(sums_, draw.uniform() * sums_.back());
  return static_cast<int>(above - sums_.begin()) + 1;
}

}  // namespace keel::data
