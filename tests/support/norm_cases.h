// Generated inputs of norm tests, and how far a backend may be from the float64 reference.
#pragma once

#include "tests/support/norm_runner.h"

namespace keel::test {

// Where the elements of one group lie, that is, of what is normalized by one mean and deviation.
enum class NormLayout {
  kRows,     // x (groups, n)
  kColumns,  // x (n, groups)
  kImages,   // x (a, groups, 1, n / a), a being the least divisor of n above 1
};

struct NormCase {
  NormLayout layout = NormLayout::kRows;
  std::int64_t groups = 3, n = 17;
  double mean = 0, deviation = 1, eps = 1e-5;
  bool gain = true, bias = true;
  int states = 0;  // state inputs: a row of zeros, then of ones

  std::string text() const;
  // Where element e of group k lies in x.
  std::int64_t at(std::int64_t k, std::int64_t e) const;
  Shape shape() const;
  // Of gain and bias: (n) for rows, (groups) otherwise.
  Shape parameter_shape() const;
  // Which element of gain and bias belongs to element e of group k.
  std::int64_t parameter(std::int64_t k, std::int64_t e) const {
    return layout == NormLayout::kRows ? e : k;
  }
};

// Normal numbers that a float holds exactly: x of the given mean and deviation, dy standard, gain
// 1 +- 0.2, bias +- 0.2.
NormData make_data(const NormCase& c);

// Puts `value(e)`, rounded to float, into the elements of group k of x.
void set_group(NormData& data, const NormCase& c, std::int64_t k,
               const std::function<double(std::int64_t e)>& value);

// The largest errors of a result against the reference's, in units of the float eps 2^-23, relative
//   y                  to max(1, |expected|), a statistic of a group also to its deviation;
//   dx of a group      to the terms that cancel in it, with g = dy * gain:
//                      rstd * max(max |g|, |mean(g)|, max |xhat| * |mean(g * xhat)|);
//   dgain, dbias       to the sums of |dy| * max(1, |xhat|) and of |dy|.
// Infinite where only one of the two is NaN, or where a value beyond the floats is not met by the
// largest float or infinity. Outputs 1 and 2 are mean and
// rstd.
struct NormErrors {
  double forward = 0, dx = 0, parameters = 0;
};
NormErrors norm_errors(const NormCase& c, const NormData& data, const NormResult& got,
                       const NormResult& expected);

// The cases that every norm is compared on; KEEL_THOROUGH=1 in the environment gives more.
std::vector<NormCase> generated_cases(NormLayout layout);
// Shapes that are cut into several blocks and panels.
std::vector<NormCase> large_cases(NormLayout layout);

}  // namespace keel::test
