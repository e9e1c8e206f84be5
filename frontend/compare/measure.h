// How far a float32 result is from the float64 one, in every measure that people ask for.
#pragma once

#include <cstdint>

#include "src/core/tensor.h"

namespace keel::compare {

// One element: where it is, and what was expected, found and allowed.
struct Element {
  int port = 0;  // output of the node
  std::int64_t index = 0;
  double expected = 0, got = 0, bound = 0;
};

// Largest errors over elements of the outputs of a node.
struct Errors {
  double absolute = 0;  // |got - expected|
  double relative = 0;  // that over |expected|, where expected is not 0
  double ulps = 0;      // that in units of the last place of float32 at |expected|
  double of_bound = 0;  // that over what rounding may add; above 1 no rounding explains it
  // The same over NodeBounds::usual; above 1 independent rounding errors do not explain it. 0: that
  // is not known.
  double of_usual = 0;
  double scale = 0;           // scale_fit(); above 1 the result is off by a common factor
  std::int64_t unjudged = 0;  // elements that differ and whose bound is infinite or NaN
  // The judge's power: the median bound over the root mean square of what is expected, the largest
  // of the outputs. A fault of this share of the values shows in at least half of the elements.
  double power = 0;
  Element worst;  // where of_bound is largest
  // Over all elements: the squares of the errors over those expected, and the cosine of the angle
  // between both as vectors; 0 and 1 where they agree.
  double nmse = 0, cosine = 1;

  bool within() const { return of_bound <= 1; }
};

class Measure {
 public:
  // Takes in output `port`. `bound` has the largest error allowed for each element; null: none is
  // judged. A value beyond the floats has to be met by the largest float or infinity of its sign,
  // within its bound, and NaN by NaN; integers have to agree. An element with an infinite or NaN
  // bound is not judged, unless it is what was expected. Throws Error{kUsage} unless all have one
  // shape.
  void add(int port, const Tensor& got, const Tensor& expected, const Tensor* bound);
  // Besides, what is stricter for a sum: NodeBounds::usual and deviation.
  void add_strict(const Tensor& got, const Tensor& expected, const Tensor& usual,
                  const Tensor& deviation);
  Errors result() const;

 private:
  void take(const Element& element);
  void take_power(const Tensor& expected, const Tensor& bound);

  Errors errors_;
  double squares_ = 0, expected_squares_ = 0, got_squares_ = 0, product_ = 0;
};

// The distance from |value| to the next float32, at least that of the numbers below the normal
// ones.
double ulp_of(double value);

}  // namespace keel::compare
