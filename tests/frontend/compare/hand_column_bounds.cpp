// Bounds of the statistics of columns, of the numbers 1 and 3 with a gradient of 1 and 3, and of
// their gradient sums.
#include <cmath>

#include "src/ops/column_gradient_sums.h"
#include "src/ops/column_moments.h"
#include "tests/frontend/compare/hand_bounds.h"

namespace keel::compare {
namespace {

using Given = GivenGraph;

// 16 and 64 units of 2^-23, in eps; squares have twice the first. A double has 2^-29 eps.
constexpr double kOfMean = 32, kOfGradient = 128, kOfSquares = 2 * kOfMean, kOfDouble = 0x1p-29;

Value one_and_three(Given& d) { return d.floats({2, 1}, {1, 3}); }

}  // namespace

const std::vector<HandCase>& column_hand_cases() {
  static const std::vector<HandCase> cases{
      {[](Given& d) { d.mark_all(ops::column_moments(d.g, one_and_three(d), {})); },
       {{"column_moments", 0, {0, 0, kOfMean * 1 + 4 * kOfDouble * 3, kOfSquares * 2}}}},
      {[](Given& d) {
         d.mark_all(ops::column_squares(d.g, one_and_three(d), {}, {.all_rows = true}));
       },
       {{"column_squares", 0, {0, 0, kOfSquares * 10, kOfSquares * 10}}}},
      {[](Given& d) {
         const Value parts = d.doubles({2, 4, 1}, {2, 3, 1, 8, 2, 2, -3, 0});
         d.mark_all(ops::merge_moments(d.g, parts));
       },
       {{"merge_moments",
         0,
         {8 * kOfDouble, 10 * kOfDouble, 42 * kOfDouble, (16 * 24 + 4 * 3 * 42 * 4) * kOfDouble}}}},
      {[](Given& d) {
         d.mark_all(ops::merge_sums(d.g, d.doubles({3, 1, 2}, {1, 0, -2, 0, 4, 0})));
       },
       {{"merge_sums", 0, {3 * 7 * kOfDouble, 0}}}},
      {[](Given& d) {
         const Value x = one_and_three(d), one = d.floats({1}, {1}), dy = d.floats({2, 1}, {1, 3});
         d.mark_all(ops::centred_gradient_sums(d.g, {x, one, one, dy}, {.padding = true}));
       },
       {{"centred_gradient_sums",
         0,
         {0, 0, kOfGradient * 3, kOfGradient * 4, kOfGradient * 7, 0}}}},
      {[](Given& d) {
         const Value x = one_and_three(d), two = d.floats({1}, {2}), dy = d.floats({2, 1}, {1, 3});
         d.mark_all(ops::uncentred_gradient_sums(d.g, {x, two, dy}, {.all_rows = true}));
       },
       {{"uncentred_gradient_sums",
         0,
         {0, 0, kOfGradient * 4, kOfGradient * 20, kOfGradient * 20}}}}};
  return cases;
}

}  // namespace keel::compare
