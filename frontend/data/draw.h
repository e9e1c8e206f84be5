// Random numbers for generated data, the same on every machine.
#pragma once

#include <cstdint>
#include <vector>

#include "src/core/rng.h"

namespace keel::data {

// The numbers of one row, one after the other: a pure function of (key, stream, row).
class Draw {
 public:
  Draw(std::uint64_t key, std::uint32_t stream, std::uint32_t row) : philox_(key, stream, row) {}

  // 0 to n - 1, all equally likely.
  int below(int n) {
    return static_cast<int>(philox_.below(next_++, static_cast<std::uint32_t>(n)));
  }
  // In [0, 1).
  double uniform() { return philox_.uniform(next_++); }
  bool chance(double p) { return uniform() < p; }

 private:
  Philox philox_;
  std::uint64_t next_ = 0;
};

// Draws ranks first, first + step and so on up to n, rank r with a probability in proportion to
// 1 / r.
class Zipf {
 public:
  explicit Zipf(int n, int first = 1, int step = 1);
  int rank(Draw& draw) const;

 private:
  int first_, step_;
  std::vector<double> sums_;
};

}  // namespace keel::data
