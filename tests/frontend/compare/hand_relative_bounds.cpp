// Bounds of relative attention, by hand.
#include <cmath>

#include "src/ops/relative_attention.h"
#include "tests/frontend/compare/hand_bounds.h"

namespace keel::compare {
namespace {

// One key, which is the query's own: qk = 2, qp = 1, k = 3 and p = 4 give the score 6 + 4.
void build_relative(GivenGraph& d) {
  const Value q = d.floats({1, 1, 1}, {2}), k = d.floats({1, 1, 1}, {3});
  const Value v = d.floats({1, 1, 1}, {5}), p = d.floats({1, 1}, {4});
  const Value u = d.state({1}, {0}), w = d.state({1}, {-1});
  d.differentiate(ops::relative_attention(d.g, {q, k, v, p, u, w}, {}), {2});
}

}  // namespace

const std::vector<HandCase>& relative_hand_cases() {
  // In one chain the sum of the products is off by 2 * 10 + 2 * 10, apart by 3 * 6 + 3 * 4; 4 * 10
  // more. e has 8 besides and 8 sqrt(1 / 8), the sum of exponentials, 1, three.
  const double es = 40 + 40, e = es + 8 + 8 * std::sqrt(1.0 / 8), sum = e + 3;
  const double of_lse = sum + 4 + 3 * 10 + 3 * std::log(2.0);
  // P is off by es + 8 + 10; both dot products are 10, off by 30 each, and cancel.
  const double of_p = es + 8 + 10, of_ds = (of_p + 3) * 20 + 30 + 30;
  static const std::vector<HandCase> cases{
      {build_relative,
       {{"relative_attention", 0, {1.05 * 5 * (e + sum + 6) + 3 * 5 + 2 * 5}},
        {"relative_attention", 1, {1.05 * of_lse}},
        {"relative_attention_backward", 0, {1.05 * 3 * of_ds}},
        {"relative_attention_backward", 1, {1.05 * 4 * of_ds}},
        {"relative_attention_backward", 2, {1.05 * 2 * of_ds}},
        {"relative_attention_backward", 3, {1.05 * 2 * (of_p + 2) + 3 * 2 + 2 * 2}},
        {"relative_attention_backward", 4, {1.05 * 1 * of_ds}}}}};
  return cases;
}

}  // namespace keel::compare
