// How the elements of an input are sampled. Each element is a pure function of the input's name, of
// the step and of its place.
#pragma once

#include <string>

#include "src/core/rng.h"
#include "src/core/tensor.h"

namespace keel::compare {

// The kind of an input's elements; floating-point numbers are rounded to float32.
enum class Sampled {
  kNormal,    // standard normal
  kPositive,  // 0.5 and more
  kBelow,     // whole numbers from 0 to below `below`
  kMask,      // 1, but 0 in the last elements of every second row, or of a single row
  kStep,      // the number of the step
  kScores,    // from -100 to 100
  // In turn: from -100 to 100, a normal number, a thousandth of one, and a normal number or 0.
  kMixed,
  kMagnitudes,  // positive, of any size from 1e-30 to 1e8
  // Normal numbers, where every row (of the last axis) or every column has its own mean and
  // deviation, of the kinds that HostileMoments names.
  kHostileRows,
  kHostileColumns,
};

struct Source {
  std::string name;
  TensorType type;
  Sampled sampled = Sampled::kNormal;
  std::int64_t below = 0;  // the limit of kBelow
};

Tensor draw(const Source& source, std::int64_t step);

// A mean and a deviation that are hard for kernels: one large beside the other, 0, at the eps of
// norms, subnormal, or with squares near the limits of float32.
struct HostileMoments {
  double mean, deviation;
};
// The moments of row or column i, which take the kinds in turn.
HostileMoments hostile_moments(std::int64_t i);

}  // namespace keel::compare
