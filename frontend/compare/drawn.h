// How the elements of an input are drawn. Each is a pure function of the input's name, of the step
// and of where it is.
#pragma once

#include <string>

#include "src/core/rng.h"
#include "src/core/tensor.h"

namespace keel::compare {

// What the elements of an input are; numbers are rounded to float32.
enum class Drawn {
  kNormal,    // standard normal
  kPositive,  // 0.5 and more
  kBelow,     // whole numbers from 0 to below `below`
  kMask,      // 1, but 0 in the last elements of every second row, or of the only one
  kStep,      // the number of the step
  kScores,    // from -100 to 100
  // In turn: from -100 to 100, a normal number, a thousandth of one, and a normal number or 0.
  kMixed,
  kMagnitudes,  // positive, of any size from 1e-30 to 1e8
  // Normal numbers, but every row (of the last axis) or every column has a mean and a deviation of
  // its own, of which HostileMoments names the kinds.
  kHostileRows,
  kHostileColumns,
};

struct Source {
  std::string name;
  TensorType type;
  Drawn drawn = Drawn::kNormal;
  std::int64_t below = 0;  // of kBelow
};

Tensor draw(const Source& source, std::int64_t step);

// A mean and a deviation that kernels find hard: large beside each other, 0, at the eps of norms,
// subnormal, or near the ends of what the square of a float32 holds.
struct HostileMoments {
  double mean, deviation;
};
// Those of row or column i, in turn.
HostileMoments hostile_moments(std::int64_t i);

}  // namespace keel::compare
