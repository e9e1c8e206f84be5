// Bounds of the ops of language models, by hand. A sum of one product is off by 3 of it in any
// order, and by 2 more for what follows; 1.05 stands for the products of the factors' errors.
#include <cmath>
#include <limits>

#include "src/ops/linear_cross_entropy.h"
#include "src/ops/multilinear_attention.h"
#include "tests/frontend/compare/hand_bounds.h"

namespace keel::compare {
namespace {

// One position: H = 2 * 3 + 1 * 4 = 10, T = 50, y = 350; G = 14 and M = 70 for dy = 2.
void build_products(GivenGraph& d) {
  ops::MultilinearOperands of{d.floats({1, 1, 1}, {2}), d.floats({1, 1, 1}, {1}),
                              d.floats({1, 1, 1}, {3}), d.floats({1, 1}, {4}),
                              d.floats({1, 1, 1}, {5}), d.floats({1, 1}, {7})};
  d.differentiate(ops::multilinear_attention(d.g, of), {2});
}

// Two words with the logit 7 each: the loss is log 2, and P is -1 and 1 for dsum = 2.
void build_two_words(GivenGraph& d) {
  const Value x = d.floats({1, 1}, {2}), table = d.floats({2, 1}, {3, 3});
  const Value bias = d.floats({2}, {1, 1}), label = d.ints({1}, {0});
  d.differentiate(
      ops::linear_cross_entropy(d.g, {.x = x, .table = table, .bias = bias, .labels = label}).sum,
      {2});
}

// Two words, with the loss and its gradients from one node.
void build_two_words_step(GivenGraph& d) {
  const Value x = d.floats({1, 1}, {2}), table = d.floats({2, 1}, {3, 3});
  const Value bias = d.floats({2}, {1, 1}), label = d.ints({1}, {0}), none;
  const Value step =
      d.g.add(kLinearCrossEntropyStep, {x, table, bias, none, none, label, d.state({}, {2})},
              LinearLossAttrs{});
  for (int port = 0; port <= LinearLossStep::kFirstGradient + LinearLossGradient::kDbias; ++port) {
    d.g.mark_output(fmt::format("out{}", port), step.at(port));
  }
}

// As two words, but for a third one that its bias excludes: nothing changes for the others.
void build_excluded_word(GivenGraph& d) {
  const Value x = d.floats({1, 1}, {2}), table = d.floats({3, 1}, {3, 3, 3});
  const Value bias = d.floats({3}, {1, 1, -std::numeric_limits<float>::infinity()});
  const Value label = d.ints({1}, {0});
  d.differentiate(
      ops::linear_cross_entropy(d.g, {.x = x, .table = table, .bias = bias, .labels = label}).sum,
      {2});
}

HandCase products_case() {
  // Each of H's two terms is rounded twice at the most: as a product and in the sum.
  const double of_h = 2 * 10, of_t = 1.05 * of_h * 5 + 5 * 50;
  const double of_g = 5 * 14, of_m = 1.05 * of_g * 5 + 5 * 70;
  return {build_products,
          {{"multilinear_attention", 0, {1.05 * of_t * 7 + 5 * 350}},
           {"multilinear_attention_backward", 0, {1.05 * of_m * 3 + 5 * 210}},
           {"multilinear_attention_backward", 1, {1.05 * of_m * 4 + 5 * 280}},
           {"multilinear_attention_backward", 2, {1.05 * of_m * 2 + 5 * 140}},
           {"multilinear_attention_backward", 3, {1.05 * of_m + 5 * 70}},
           {"multilinear_attention_backward", 4, {1.05 * (of_g * 10 + 14 * of_h) + 5 * 140}},
           {"multilinear_attention_backward", 5, {1.05 * of_t * 2 + 5 * 100}}}};
}

// Bounds of two words with the logit 7: of the losses, of lse, and of P of the label and of the
// other one, which read a given lse or one that is off itself.
struct TwoWords {
  double of_loss, of_lse, label, other;

  explicit TwoWords(bool lse_is_given = true) {
    const double log2 = std::log(2.0), of_z = 5 * 6 + 7;
    const double of_exp = of_z + 5.4;
    of_lse = of_exp + 7 + log2, of_loss = of_exp + of_z + 2 * log2;
    // P = 2 (1/2 - 1) of the label, whose numbers are 1/2 and 1, and 2 * 1/2.
    const double of_p = 0.5 * (of_z + (lse_is_given ? 0 : of_lse) + 2 * log2 + 4.4);
    label = 2 * (of_p + 3 * 1.5) + 1, other = 2 * (of_p + 3 * 0.5) + 1;
  }
  double of_dx() const { return 1.05 * 3 * (label + other) + 2 * 6 + 2 * 6; }
};

HandCase two_words_case() {
  const TwoWords w;
  return {build_two_words,
          {{"linear_cross_entropy", 0, {w.of_loss}},
           {"linear_cross_entropy", 1, {w.of_loss}},
           {"linear_cross_entropy", 2, {w.of_lse}},
           {"linear_cross_entropy_backward", 0, {w.of_dx()}},
           {"linear_cross_entropy_backward",
            1,
            {1.05 * 2 * w.label + 5 * 2, 1.05 * 2 * w.other + 5 * 2}},
           {"linear_cross_entropy_backward", 2, {w.label + 1, w.other + 1}}}};
}

HandCase two_words_step_case() {
  const TwoWords w(false);
  return {
      build_two_words_step,
      {{"linear_cross_entropy_step", 0, {w.of_loss}},
       {"linear_cross_entropy_step", 1, {w.of_loss}},
       {"linear_cross_entropy_step", 2, {w.of_lse}},
       {"linear_cross_entropy_step", 3, {w.of_dx()}},
       {"linear_cross_entropy_step", 4, {1.05 * 2 * w.label + 5 * 2, 1.05 * 2 * w.other + 5 * 2}},
       {"linear_cross_entropy_step", 5, {w.label + 1, w.other + 1}}}};
}

HandCase excluded_word_case() {
  const TwoWords w;
  return {build_excluded_word,
          {{"linear_cross_entropy", 0, {w.of_loss}},
           {"linear_cross_entropy", 1, {w.of_loss}},
           {"linear_cross_entropy", 2, {w.of_lse}},
           {"linear_cross_entropy_backward", 0, {w.of_dx()}},
           {"linear_cross_entropy_backward", 2, {w.label + 1, w.other + 1, 0}}}};
}

}  // namespace

const std::vector<HandCase>& language_hand_cases() {
  static const std::vector<HandCase> cases{products_case(), two_words_case(), two_words_step_case(),
                                           excluded_word_case()};
  return cases;
}

}  // namespace keel::compare
