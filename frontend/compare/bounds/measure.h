// Distances of a float32 result from the float64 one, in every common measure.
#pragma once

#include <cstdint>

#include "src/core/tensor.h"

namespace keel::compare {

// One element: its place, and its expected, actual and allowed value.
struct Element {
  int port = 0;  // output of the node
  std::int64_t index = 0;
  double expected = 0, got = 0, bound = 0;
};

// The largest errors of the elements of a node's outputs.
struct Errors {
  double absolute = 0;  // |got - expected|
  double relative = 0;  // |got - expected| / |expected|, where expected is not 0
  double ulps = 0;      // |got - expected| in units of the last place of float32 at |expected|
  double of_bound = 0;  // |got - expected| / its bound; above 1 no rounding explains it
  // |got - expected| / NodeBounds::usual; above 1 independent rounding errors do not explain it. 0:
  // not known.
  double of_usual = 0;
  double scale = 0;             // scale_fit(); above 1 the result is off by a common factor
  std::int64_t uncompared = 0;  // elements that differ and whose bound is infinite or NaN
  // How small a fault shows: the median bound over the root mean square of expected values, largest
  // of the outputs. A fault of this share of the values shows in at least half of the elements.
  double sensitivity = 0;
  Element worst;  // where of_bound is largest
  // Over all elements: sum of squared errors / sum of squared expected values, and the cosine of
  // the angle between both as vectors; 0 and 1 if they agree.
  double nmse = 0, cosine = 1;

  bool within() const { return of_bound <= 1; }
};

class Measure {
 public:
  // Takes in output `port`. `bound` has the largest error allowed for each element; null: no
  // element is compared. If a value is beyond the floats, the result must be the largest float or
  // infinity of its sign, within its bound; NaN must be NaN; integers have to agree. An element
  // with an infinite or NaN bound is not compared, unless it equals the expected one. Throws
  // Error{kUsage} unless all have one shape.
  void add(int port, const Tensor& got, const Tensor& expected, const Tensor* bound);
  // Also applies the stricter limits of a sum: NodeBounds::usual and deviation.
  void add_strict(const Tensor& got, const Tensor& expected, const Tensor& usual,
                  const Tensor& deviation);
  Errors result() const;

 private:
  void take(const Element& element);
  void take_sensitivity(const Tensor& expected, const Tensor& bound);

  Errors errors_;
  double squares_ = 0, expected_squares_ = 0, got_squares_ = 0, product_ = 0;
};

// The distance from |value| to the next float32; below the normal numbers, that of the smallest
// normal one.
double ulp_of(double value);

}  // namespace keel::compare
