// Bounds of gradients as rows, and of updates by them.
#include "src/ops/optimizer_step.h"
#include "src/ops/row_gradient.h"
#include "tests/frontend/compare/hand_bounds.h"

namespace keel::compare {
namespace {

using Given = GivenGraph;

// The second of two rows is 2 and has the gradient 3; both have a momentum of 4.
void update_by_rows(Given& d, const SgdAttrs& attrs) {
  const Value p = d.floats({2, 1}, {2, 2}), before = d.floats({2, 1}, {4, 4});
  const Value g = d.floats({1, 1}, {3}), ids = d.ints({1}, {1});
  const Value lr = d.floats({}, {0.5}), scale = d.floats({}, {1});
  d.mark_all(ops::sgd_step(d.g, {p, g, lr, scale, before, ids}, attrs));
}

}  // namespace

const std::vector<HandCase>& row_hand_cases() {
  constexpr double kOfU = 2 + 2 + 3 + 5, kOfP = 5 + 0.5 * kOfU + 2.5 + 0.5;
  static const std::vector<HandCase> cases{
      {[](Given& d) {
         const Value ids = d.ints({3}, {2, 2, 1}), dy = d.floats({3, 1}, {1, -2, 5});
         d.mark_all(ops::row_gradient(d.g, ids, dy, {.vocabulary = 3}));
       },
       {{"sum_groups", 0, {4 * 5, 4 * 3, 0}}}},
      {[](Given& d) {
         const Value rows = d.floats({2, 1}, {3, 1}), ids = d.ints({2}, {0, 2});
         d.mark_all(ops::sum_squares(d.g, rows, ids, 3));
       },
       {{"sum_squares", 0, {10}}}},
      {[](Given& d) {
         d.mark_all(ops::total_norm(d.g, {d.floats({}, {9}), d.floats({}, {16})}));
       },
       {{"total_norm", 0, {5}}}},
      {[](Given& d) { update_by_rows(d, {.momentum = 0.5}); },
       {{"sgd_step", 0, {2 + 0.5 * 6 + 1 + 1, kOfP}}, {"sgd_step", 1, {2 + 2 + 2, kOfU}}}},
      {[](Given& d) { update_by_rows(d, {.momentum = 0.5, .lazy = true}); },
       {{"sgd_step", 0, {0, kOfP}}, {"sgd_step", 1, {0, kOfU}}}}};
  return cases;
}

}  // namespace keel::compare
