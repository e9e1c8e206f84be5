// Bounds of ops by hand, with the formulas of docs/numerics.md. In comments: n eps means n
// roundings of a number of size 1.
#include <cmath>

#include "src/ops/attention.h"
#include "src/ops/attention_window.h"
#include "src/ops/conv2d.h"
#include "src/ops/dropout.h"
#include "src/ops/embedding.h"
#include "src/ops/embedding_bag.h"
#include "src/ops/filter_bank.h"
#include "src/ops/loss.h"
#include "src/ops/matmul.h"
#include "src/ops/mixture_density.h"
#include "src/ops/norm_noise.h"
#include "src/ops/optimizer_step.h"
#include "src/ops/order_violation.h"
#include "src/ops/pool2d.h"
#include "src/ops/random_normal.h"
#include "src/ops/recurrent.h"
#include "src/ops/softmax.h"
#include "tests/frontend/compare/hand_bounds.h"

namespace keel::compare {
namespace {

using Given = GivenGraph;

const double kLog2 = std::log(2.0), kSigmoid1 = 1 / (1 + std::exp(-1.0)), kTanh1 = std::tanh(1.0);

// A sum of k terms: (k + 2) eps of the sum of their sizes.
void add_sums(std::vector<HandCase>& all) {
  all.push_back({[](Given& d) {
                   const Value a = d.floats({1, 2}, {1, -2}), b = d.floats({2, 1}, {3, 4});
                   d.mark_all(ops::matmul(d.g, a, b, {.bias = d.floats({1}, {5})}));
                 },
                 {{"matmul", 0, {(3 + 2) * (3 + 8 + 5)}}}});
  all.push_back({[](Given& d) {
                   const Value x = d.floats({1, 1, 2, 2}, {1, -2, 3, 4});
                   const Value w = d.floats({1, 1, 2, 2}, {1, 1, 1, -1});
                   d.differentiate(ops::conv2d(d.g, x, w, {.bias = d.floats({1}, {2})}), {3});
                 },
                 {{"conv2d", 0, {(5 + 2) * (10 + 2)}},
                  {"conv2d_backward_input", 0, {18, 18, 18, 18}},
                  {"conv2d_backward_weight", 0, {3 * 3, 3 * 6, 3 * 9, 3 * 12}}}});
  // Added up in double and rounded once.
  all.push_back({[](Given& d) {
                   d.mark_all(ops::sum(d.g, d.floats({3}, {1, -2, 4})));
                 },
                 {{"sum", 0, {3}}}});
  all.push_back({[](Given& d) {
                   d.mark_all(ops::mean(d.g, d.floats({3}, {1, -2, 4})));
                 },
                 {{"mean", 0, {1}}}});
  all.push_back({[](Given& d) {
                   d.mark_all(ops::sum_squares(d.g, d.floats({3}, {1, -2, 3})));
                 },
                 {{"sum_squares", 0, {14}}}});
  all.push_back({[](Given& d) {
                   const Value table = d.floats({3, 1}, {0, 0, 0});
                   d.differentiate(ops::embedding(d.g, table, d.ints({3}, {2, 2, 1})), {1, -2, 5});
                 },
                 {{"embedding_backward", 0, {0, 4 * 5, 4 * 3}}}});
  all.push_back({[](Given& d) {
                   const Value tables = d.floats({2, 2, 1}, {1, -2, 3, 4});
                   d.mark_all(ops::embedding_bag(d.g, tables, d.ints({1, 2}, {1, 0})));
                 },
                 {{"embedding_bag", 0, {4 * 5}}}});
}

// Sums over points and windows, and a chain.
void add_further_sums(std::vector<HandCase>& all) {
  all.push_back({[](Given& d) {
                   const Value x = d.floats({1, 1}, {3}), y = d.floats({1, 1}, {1});
                   d.differentiate(ops::order_violation(d.g, x, y), {2});
                 },
                 {{"order_violation", 0, {(3 + 3) * 4}},
                  {"order_violation_backward", 0, {(3 + 1) * 8}},
                  {"order_violation_backward", 1, {(3 + 1) * 8}}}});
  all.push_back({[](Given& d) {
                   const Value x = d.floats({1, 1, 2, 2}, {1, -2, 3, 4});
                   d.differentiate(ops::avg_pool2d(d.g, x, 2, 2), {4});
                 },
                 {{"avg_pool2d", 0, {(5 + 2) * 2.5}}, {"avg_pool2d_backward", 0, {4, 4, 4, 4}}}});
  all.push_back({[](Given& d) {
                   const Value x = d.floats({1, 1, 2, 2}, {1, -2, 3, 4});
                   d.differentiate(ops::max_pool2d(d.g, x, 2, 2), {4});
                 },
                 {{"max_pool2d_backward", 0, {0, 0, 0, 4 * 4}}}});
  // A chain of two steps: the error of the first is multiplied.
  all.push_back({[](Given& d) {
                   const Value sum = ops::add(d.g, d.floats({1}, {2}), d.floats({1}, {1}));
                   d.g.mark_output("y", ops::mul(d.g, sum, d.floats({1}, {3})));
                 },
                 {{"fused_elementwise", 0, {3 * 3 + 9}}},
                 true});
}

void add_random(std::vector<HandCase>& all) {
  all.push_back({[](Given& d) {
                   const Value x = d.floats({1, 2}, {2, -5});
                   d.differentiate(ops::dropout(d.g, x, d.key(), 1e-6, 1), {3, 4});
                 },
                 {{"dropout", 0, {3 * 2, 3 * 5}}, {"dropout_backward", 0, {3 * 3, 3 * 4}}}});
  all.push_back(
      {[](Given& d) {
         const NormNoiseAttrs plain{.n_mean = 0, .n_std = 1, .r_mean = 0, .r_std = 0, .seed = 1};
         const Value x = d.floats({1, 1}, {2});
         d.differentiate(ops::norm_noise(d.g, x, {d.key()}, plain), {3});
       },
       {{"norm_noise", 0, {(3 * 2 + 2) * 2}}, {"norm_noise_backward", 0, {(3 * 2 + 2) * 3}}}});
  // S has 3 (1 + 1 + 6 r) + 29 r, and M, which is at most 1/2, has 5 (n + r).
  all.push_back({[](Given& d) {
                   const NormNoiseAttrs scaled{
                       .n_mean = 0, .n_std = 1, .r_mean = 0, .r_std = 0.1, .seed = 1};
                   d.mark_all(ops::norm_noise(d.g, d.floats({1, 1}, {2}), {d.key()}, scaled));
                 },
                 {{"norm_noise", 0, {(3 * 2.6 + 2.9 + 2) * 2}}}});
  all.push_back({[](Given& d) {
                   const NormNoiseAttrs moved{
                       .n_mean = 0.1, .n_std = 1, .r_mean = 0.4, .r_std = 0, .seed = 1};
                   d.mark_all(ops::norm_noise(d.g, d.floats({1, 1}, {0}), {d.key()}, moved));
                 },
                 {{"norm_noise", 0, {5 * 0.5 + 2 * 0.25}}}});
  all.push_back({[](Given& d) {
                   d.mark_all(ops::random_normal(d.g, {DType::kF32, {2}}, d.key(), 1));
                 },
                 {{"random_normal", 0, {30, 30}}}});
}

void add_losses(std::vector<HandCase>& all) {
  // The sum of two exponentials: 3.4 of their own, 4 of two terms.
  const double of_sum = 3.4 + 4, of_lse = of_sum + 2 * 3.4 * kLog2 + 2 * kLog2;
  const double p = 1 / (1 + std::exp(-2.0)), q = 1 - p, far_sum = 2 * q + of_sum;
  all.push_back({[](Given& d) {
                   d.mark_all(ops::softmax(d.g, d.floats({2, 2}, {0, 0, 0, -2})));
                 },
                 {{"softmax",
                   0,
                   {0.5 * (6.4 + of_sum), 0.5 * (6.4 + of_sum), p * (6.4 + far_sum),
                    q * (2 + 6.4 + far_sum)}}}});
  all.push_back({[](Given& d) {
                   d.differentiate(ops::softmax(d.g, d.floats({1, 2}, {0, 0})), {2, 1});
                 },
                 {{"softmax_backward",
                   0,
                   {0.5 * (4 * 1.5 + 3 * (2 + 1.5)), 0.5 * (4 * 1.5 + 3 * (1 + 1.5))}}}});
  all.push_back({[](Given& d) {
                   d.differentiate(ops::log_softmax(d.g, d.floats({1, 2}, {0, 0})), {2, 1});
                 },
                 {{"log_softmax", 0, {of_lse + 2 * kLog2, of_lse + 2 * kLog2}},
                  {"log_softmax_backward",
                   0,
                   {0.5 * 4 * 3 + 5.4 * 0.5 * 3 + 2 * 2, 0.5 * 4 * 3 + 5.4 * 0.5 * 3 + 2 * 1}}}});
  const double of_loss = of_lse + 4 * kLog2 + 3 * kLog2, of_p = 0.5 * (2 * kLog2 + 3.4 + 1);
  // The factor 2 is off by 4 of a division, and two more of the products.
  all.push_back({[](Given& d) {
                   const Value x = d.floats({1, 2}, {0, 0});
                   d.differentiate(ops::cross_entropy(d.g, x, d.ints({1}, {0})).mean, {2});
                 },
                 {{"cross_entropy", 0, {of_loss + 2 * kLog2}},
                  {"cross_entropy", 1, {of_loss}},
                  {"cross_entropy", 2, {of_lse}},
                  {"cross_entropy", 3, {0}},
                  {"cross_entropy_backward",
                   0,
                   {4 * 0.5 + 2 * (of_p + 3 * 1.5) + 2, 4 * 0.5 + 2 * (of_p + 3 * 0.5) + 2}}}});
  // Smoothing adds the mean over the classes, a sum of two.
  all.push_back({[](Given& d) {
                   const Value x = d.floats({1, 2}, {0, 0});
                   d.mark_all(
                       ops::cross_entropy(d.g, x, d.ints({1}, {0}), {.label_smoothing = 1}).mean);
                 },
                 {{"cross_entropy", 1, {of_loss + 4 * kLog2}}}});
  const double soft = std::log1p(std::exp(2.0));
  const double of_bce = 5 * soft + 2 * 2 + 3 * 1 + 3 * (soft + 1);
  all.push_back({[](Given& d) {
                   const Value x = d.floats({1}, {2}), t = d.state({1}, {0.5});
                   d.differentiate(ops::bce_with_logits(d.g, x, t).mean, {2});
                 },
                 {{"bce_with_logits", 0, {of_bce + 2 * (soft - 1)}},
                  {"bce_with_logits", 1, {of_bce}},
                  {"bce_with_logits_backward",
                   0,
                   {4 * (p - 0.5) + 2 * (5 * p + p - 0.5) + 2 * 2 * (p - 0.5)}}}});
}

void add_attention(std::vector<HandCase>& all) {
  // One key: score 6, off by 3 * 6 + 4 * 6; e has 8 besides and 8 sqrt(1 / 16), the sum of
  // exponentials, 1, three.
  const double es = 42, e = es + 8 + 2, sum = e + 3;
  const double of_lse = sum + 4 + 3 * 6 + 3 * kLog2;
  // P is off by es + 8 + 6; both dot products are 10, off by 30 each, and cancel.
  const double of_p = es + 8 + 6, of_ds = (of_p + 3) * 20 + 30 + 30;
  all.push_back({[](Given& d) {
                   const Value q = d.floats({1, 1, 1}, {2}), k = d.floats({1, 1, 1}, {3});
                   const Value v = d.floats({1, 1, 1}, {5});
                   d.differentiate(ops::attention(d.g, {q, k, v}, {.heads = 1}), {2});
                 },
                 {{"attention", 0, {1.05 * 5 * (e + sum + 6) + 3 * 5 + 2 * 5}},
                  {"attention", 1, {1.05 * of_lse}},
                  {"attention_backward", 0, {1.05 * 3 * of_ds}},
                  {"attention_backward", 1, {1.05 * 2 * of_ds}},
                  {"attention_backward", 2, {1.05 * 2 * (of_p + 2) + 3 * 2 + 2 * 2}}}});
}

// u = 1 and w = 0 in every gate: a sigmoid of 5 eps and its slope, a tanh of 4.4 eps and its slope.
void add_lstm(std::vector<HandCase>& all) {
  const double s = kSigmoid1, t = kTanh1;
  const double of_s = 5 * s + s * (1 - s), of_t = 4.4 * t + (1 - t * t);
  const double of_fc = 2 * of_s + 2 * s, of_ig = of_s * t + s * of_t + s * t;
  const auto build = [](Given& d) {
    const Value u = d.floats({1, 4}, {1, 1, 1, 1}), w = d.floats({1, 4}, {0, 0, 0, 0});
    const ops::LstmCell cell = ops::lstm_cell(d.g, u, w, d.floats({1, 1}, {2}));
    d.differentiate(ops::add(d.g, ops::scale(d.g, cell.c, 1.5), cell.o), {2});
    d.mark_all(cell.c);
  };
  const double v = 3 * s * (1 - t * t), d_out = 2 * s * (1 - s);  // dc = 3, do = 2
  all.push_back({build,
                 {{"lstm_cell", 0, {of_fc + of_ig + 2 * s + s * t}},
                  {"lstm_cell", 1, {of_s}},
                  {"lstm_cell", 2, {of_s, of_s, of_t}},
                  {"lstm_cell_backward",
                   0,
                   {4 * 6 * s * (1 - s), 4 * 3 * t * s * (1 - s), 3 * d_out, 2 * v + 3 * s}},
                  {"lstm_cell_backward", 1, {3 * s}}}});
  const auto output = [](Given& d) {
    const Value h = ops::lstm_output(d.g, d.floats({1, 1}, {0.5}), d.floats({1, 1}, {1}));
    d.differentiate(h, {2});
  };
  all.push_back({output,
                 {{"lstm_output", 0, {0.5 * 4.4 * t + 0.5 * t}},
                  {"lstm_output", 1, {4.4 * t}},
                  {"lstm_output_backward", 0, {2 * t}},
                  {"lstm_output_backward", 1, {2 * (1 - t * t) + 1}}}});
}

void add_gru(std::vector<HandCase>& all) {
  const double s = kSigmoid1, k = std::tanh(s), slope = 1 - k * k;
  const double of_s = 5 * s + s * (1 - s), of_k = 4.4 * k + slope * (of_s + 2 * s);
  const double of_h =
      2 * (of_s + 1 - s) + 2 * (1 - s) + of_s * k + s * of_k + s * k + 2 * (1 - s) + s * k;
  const double ds = 2 * s * slope, of_ds = 2 * ds + 2 * s, far = 2 - k;
  const auto build = [](Given& d) {
    const ops::GruCell cell{d.floats({1, 2}, {1, 1}), d.floats({1, 2}, {0, 0}),
                            d.floats({1, 1}, {0}), d.floats({1, 1}, {1}), d.floats({1, 1}, {2})};
    d.differentiate(ops::gru_cell(d.g, cell), {2});
  };
  all.push_back(
      {build,
       {{"gru_cell", 0, {of_h}},
        {"gru_cell", 1, {of_s, of_s, of_k}},
        {"gru_cell_backward", 0, {5 * 2 * far * s * (1 - s), (of_ds + 4 * ds) * s * (1 - s)}},
        {"gru_cell_backward", 1, {of_ds}},
        {"gru_cell_backward", 2, {of_ds * s + ds * s}},
        {"gru_cell_backward", 3, {4 * (1 - s)}}}});
}

// One bump over one symbol: alpha = beta = 1 of 3.4 eps each, kappa = 1.5, d = 0.5.
void add_windows(std::vector<HandCase>& all) {
  const double e = std::exp(-0.25);
  const double of_kappa = 3.4 + 1.5, of_d = of_kappa + 0.5;
  const double of_bd = 3.4 * 0.5 + of_d + 0.5, of_bdd = of_bd * 0.5 + 0.5 * of_d + 0.25;
  const double of_phi = (3.4 + of_bdd + 3.4 + 1 + 3) * e;
  all.push_back({[](Given& d) {
                   const Value hats = d.floats({1, 3}, {0, 0, 0}), before = d.floats({1, 1}, {0.5});
                   d.mark_all(ops::attention_window(d.g, hats, before, d.ints({1, 1}, {0}), 1).w);
                 },
                 {{"attention_window", 0, {of_phi + 3 * e}},
                  {"attention_window", 1, {of_kappa}},
                  {"attention_window", 2, {of_phi}}}});
  // g = 2, d = 0.5 +- 0.5 eps. The bump is off by 5.25, g E by 12.5, and the sums by 3 eps more.
  const double plain = 12.5 + 3 * 2, first = 12.5 * 0.5 + 2 * 0.5 + 1 + 3;
  const double second = (12.5 * 0.5 + 2) * 0.5 + 0.5 + 0.5 + 3 * 0.5;
  const double of_before = (2 * 3.4 + 2 + 2 * 3.4 + 2) + 2 * first + 2 + 2;
  all.push_back(
      {[](Given& d) {
         const Value hats = d.floats({1, 3}, {0, 0, 0}), before = d.floats({1, 1}, {0.5});
         const auto window = ops::attention_window(d.g, hats, before, d.ints({1, 1}, {0}), 1);
         d.differentiate(window.phi, {2});
       },
       {{"attention_window_backward",
         0,
         {e * (3.4 * 2 + plain + 2), e * ((3.4 + 3.4 + 1) * 0.5 + second + 0.5),
          e * (3.4 * 2 + of_before + 2)}},
        {"attention_window_backward", 1, {e * of_before}}}});
}

// An image of one pixel, one away from the filters along x and below those along y.
void add_filters(std::vector<HandCase>& all) {
  const double near = 3.4 + (3.4 + 3 + 1 + 2 + 1) + 1;
  const double kernel = 3.5 + 3.4, far = kernel + (kernel + 3 + 1 + 2 + 1) + 1;
  all.push_back({[](Given& d) {
                   const Value p = d.floats({1, 5}, {1, 0, 0, 0, 0});
                   const FilterBankAttrs attrs{.filters = 2, .rows = 1, .columns = 1};
                   d.mark_all(ops::filter_bank(d.g, p, attrs).fx);
                 },
                 {{"filter_bank", 0, {far, far}}, {"filter_bank", 1, {near, near}}}});
  // dF = 2 and F = 1: T = 2 - 2 is off by 8 of the dot product and its difference.
  all.push_back({[](Given& d) {
                   const Value p = d.floats({1, 5}, {1, 0, 0, 0, 0});
                   const FilterBankAttrs attrs{.filters = 2, .rows = 1, .columns = 1};
                   d.differentiate(ops::filter_bank(d.g, p, attrs).fx, {2, 2});
                 },
                 {{"filter_bank_backward", 0, {2 * 8, 0, 2 * 8 / 2, 0, 0}}}});
}

// Computed in double and rounded once.
void add_mixture(std::vector<HandCase>& all) {
  all.push_back({[](Given& d) {
                   const Value y = d.floats({1, 7}, {0, 0, 0, 0, 0, 0, 0});
                   const Value points = d.state({1, 3}, {0, 0, 0});
                   d.differentiate(ops::mixture_density(d.g, y, points).nll, {2});
                 },
                 {{"mixture_density", 0, {std::log(2 * M_PI) + kLog2}},
                  {"mixture_density_backward", 0, {1, 0, 0, 0, 2, 2, 0}}}});
}

// p = 2, g = 3, lr = 0.5 and scale = 1: the rate is off by 1 eps, g' by 3.
struct HandUpdate {
  Value p, g, lr, scale;
  explicit HandUpdate(Given& d)
      : p(d.floats({1}, {2})),
        g(d.floats({1}, {3})),
        lr(d.floats({}, {0.5})),
        scale(d.floats({}, {1})) {}
};

void add_updates(std::vector<HandCase>& all) {
  all.push_back({[](Given& d) {
                   const HandUpdate u(d);
                   d.mark_all(ops::sgd_step(d.g, {u.p, u.g, u.lr, u.scale, {}}, {}));
                 },
                 {{"sgd_step", 0, {3 + 1.5 + 1.5 + 0.5}}}});
  const double of_u = 2 + 2 + 3 + 5;
  all.push_back(
      {[](Given& d) {
         const HandUpdate u(d);
         const Value before = d.floats({1}, {4});
         d.mark_all(ops::sgd_step(d.g, {u.p, u.g, u.lr, u.scale, before}, {.momentum = 0.5}));
       },
       {{"sgd_step", 0, {5 + 0.5 * of_u + 2.5 + 0.5}}, {"sgd_step", 1, {of_u}}}});
  // m' = 2 and v' = 5.25, which become 4 and 21.
  const double of_m = 1 + (1.5 + 1.5 + 1.5) + 2;
  const double of_v = 6 + (0.25 * 9 + 0.25 * 27 + 2.25) + 5.25, root = std::sqrt(21.0);
  const double of_m_hat = (of_m + 4 * 0.5) / 0.5 + 2 * 4;
  const double of_v_hat = (of_v + 21 * 0.25) / 0.25 + 2 * 21;
  const double below = root + 0.5, change = 4 / below;
  const double of_below = of_v_hat / (2 * root) + 2 * root + 0.5 + below;
  const double of_change = (of_m_hat + change * of_below) / below + 2 * change;
  all.push_back(
      {[](Given& d) {
         const HandUpdate u(d);
         const Value step = d.ints({}, {0}), m = d.floats({1}, {1}), v = d.floats({1}, {4});
         d.mark_all(ops::adam_step(d.g, {u.p, u.g, u.lr, u.scale, step, m, v},
                                   {.beta1 = 0.5, .beta2 = 0.75, .eps = 0.5}));
       },
       {{"adam_step", 0, {2 + change + 0.5 * of_change + 3 * 0.5 * change + 2 - 0.5 * change}},
        {"adam_step", 1, {of_m}},
        {"adam_step", 2, {of_v}}}});
  const double r = std::sqrt(13.5), of_r = (27 + 13 + 0.5 + 13.5) / (2 * r) + 2 * r;
  const double moved = 1.5 / r, of_moved = (6 + moved * of_r) / r + 2 * moved;
  all.push_back({[](Given& d) {
                   const HandUpdate u(d);
                   d.mark_all(ops::adagrad_step(d.g, {u.p, u.g, u.lr, u.scale, d.floats({1}, {4})},
                                                {.eps = 0.5}));
                 },
                 {{"adagrad_step", 0, {of_moved + 2 - moved}}, {"adagrad_step", 1, {27 + 13}}}});
  // n' = 9.5, q' = 2, a variance of 5.5, d' = 1 - 1.5 / sqrt(6).
  const double of_n = 10 + 22.5 + 9.5, of_q = 1 + 4.5 + 2, six = std::sqrt(6.0);
  const double of_six = (of_n + 4 * of_q + 4 + 5.5 + 0.5 + 6) / (2 * six) + 2 * six;
  const double step = 1.5 / six, of_d = 2 + (6 + step * of_six) / six + 2 * step + 1 - step;
  all.push_back({[](Given& d) {
                   const HandUpdate u(d);
                   const Value n = d.floats({1}, {10}), q = d.floats({1}, {1});
                   d.mark_all(ops::rmsprop_step(d.g,
                                                {u.p, u.g, u.lr, u.scale, n, q, d.floats({1}, {2})},
                                                {.keep = 0.5, .momentum = 0.5, .eps = 0.5}));
                 },
                 {{"rmsprop_step", 0, {of_d + 3 - step}},
                  {"rmsprop_step", 1, {of_n}},
                  {"rmsprop_step", 2, {of_q}},
                  {"rmsprop_step", 3, {of_d}}}});
}

}  // namespace

const std::vector<HandCase>& op_hand_cases() {
  static const std::vector<HandCase> cases = [] {
    std::vector<HandCase> all;
    for (auto add : {add_sums, add_further_sums, add_random, add_losses, add_attention, add_lstm,
                     add_gru, add_windows, add_filters, add_mixture, add_updates}) {
      add(all);
    }
    return all;
  }();
  return cases;
}

}  // namespace keel::compare
