#include "frontend/data/draw.h"

#include <algorithm>

namespace keel::data {

Zipf::Zipf(int n, int first, int step) : first_(first), step_(step) {
  double sum = 0;
  for (int rank = first; rank <= n; rank += step) sums_.push_back(sum += 1.0 / rank);
}

int Zipf::rank(Draw& draw) const {
  const auto above = std::ranges::upper_bound(sums_, draw.uniform() * sums_.back());
  return first_ + step_ * static_cast<int>(above - sums_.begin());
}

}  // namespace keel::data
