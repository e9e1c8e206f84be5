// Bounds of norms by hand. Most normalize the numbers 1 and 3, whose mean is 2 and deviation 1, so
// that xhat is -1 and 1, with gain 2, bias 0.5 and dy of 1 and 3. What subtracts no mean has
// xhat = x / sqrt(5).
#include <cmath>

#include "src/ops/norm/ada_norm.h"
#include "src/ops/norm/batch_norm.h"
#include "src/ops/norm/batch_renorm.h"
#include "src/ops/norm/derf.h"
#include "src/ops/norm/detach_norm.h"
#include "src/ops/norm/dyt.h"
#include "src/ops/norm/group_norm.h"
#include "src/ops/norm/group_scaling.h"
#include "src/ops/norm/instance_norm.h"
#include "src/ops/norm/layer_norm.h"
#include "src/ops/norm/mabn.h"
#include "src/ops/norm/pn_v.h"
#include "src/ops/norm/power_norm.h"
#include "src/ops/norm/rms_norm.h"
#include "src/ops/norm/scale_norm.h"
#include "src/ops/norm/seed_norm.h"
#include "src/ops/norm/unified_norm.h"
#include "src/ops/norm/weight_norm.h"
#include "tests/frontend/compare/hand_bounds.h"

namespace keel::compare {
namespace {

using Given = GivenGraph;

// 16 and 64 units of 2^-23, in eps; squares have twice the first.
constexpr double kF = 32, kB = 128, kSquare = 2 * kF;
const double kR = 1 / std::sqrt(5.0);  // of 1 and 3 without a mean

// g = 2 and 6, whose products with xhat have a mean of 4. The saved mean is off by 2 eps, which may
// move the slope and xhat: 2 (4 + 4).
constexpr double kDx = kB * 6 + 16;
// dgain of 1 |dy| and of 3 |dy|: the same 2 eps beside xhat.
constexpr double kDgain1 = kB + 2, kDgain3 = 3 * (kB + 2);
// Without a mean: xhat = 1 / sqrt(5) and 3 / sqrt(5).
const double kY3 = kF * (2 * 3 * kR + 0.5), kDgainR = kB * 10 * kR;

ops::NormAffine two(Given& d) { return {d.floats({2}, {2, 2}), d.floats({2}, {0.5, 0.5})}; }
ops::NormAffine one(Given& d) { return {d.floats({1}, {2}), d.floats({1}, {0.5})}; }
Value row(Given& d) { return d.floats({1, 2}, {1, 3}); }
Value column(Given& d) { return d.floats({2, 1}, {1, 3}); }

void add_row_norms(std::vector<HandCase>& all) {
  all.push_back({[](Given& d) {
                   const Value x = row(d);
                   d.differentiate(ops::layer_norm(d.g, x, two(d)), {1, 3});
                 },
                 {{"layer_norm", 0, {kF * 2, kF * 2.5}},
                  {"layer_norm", 1, {kF * 2}},
                  {"layer_norm", 2, {kSquare}},
                  {"layer_norm_backward", 0, {kDx, kDx}},
                  {"layer_norm_backward", 1, {kDgain1, kDgain3}},
                  {"layer_norm_backward", 2, {kB, kB * 3}}}});
  // A large bias; a slope that counts for more than g; a mean that is large beside the deviation.
  all.push_back({[](Given& d) {
                   const Value x = row(d), gain = d.floats({2}, {2, 2});
                   d.mark_all(ops::layer_norm(d.g, x, {gain, d.floats({2}, {-9, 10})}));
                 },
                 {{"layer_norm", 0, {kF * 11, kF * 12}}}});
  const double r = 1 / std::sqrt(2.0), slope = 4 * r / 3, most = 2 * r;
  all.push_back({[](Given& d) {
                   const Value x = d.floats({1, 3}, {0, 0, 3});
                   d.differentiate(ops::layer_norm(d.g, x, {}), {1, 1, 1});
                 },
                 {{"layer_norm_backward", 0,
                   std::vector<double>(3, kB * r * most * slope + r * r * (slope + most))}}});
  all.push_back({[](Given& d) {
                   const Value x = d.floats({1, 2}, {9999, 10001});
                   d.differentiate(ops::layer_norm(d.g, x, two(d)), {1, 3});
                 },
                 {{"layer_norm", 1, {kF * 10000}},
                  {"layer_norm_backward", 0, {kB * 6 + 8e4, kB * 6 + 8e4}},
                  {"layer_norm_backward", 1, {kB + 1e4, 3 * (kB + 1e4)}}}});
}

void add_other_row_norms(std::vector<HandCase>& all) {
  all.push_back({[](Given& d) {
                   const Value x = row(d);
                   d.differentiate(ops::rms_norm(d.g, x, two(d)), {1, 3});
                 },
                 {{"rms_norm", 0, {kF * 2, kY3}},
                  {"rms_norm", 1, {kSquare * kR}},
                  {"rms_norm_backward", 0, {kB * 6 * kR, kB * 6 * kR}},
                  {"rms_norm_backward", 1, {kB * kR, kB * 9 * kR}},
                  {"rms_norm_backward", 2, {kB, kB * 3}}}});
  all.push_back({[](Given& d) {
                   d.differentiate(ops::detach_norm(d.g, row(d)), {1, 3});
                 },
                 {{"detach_norm", 0, {kF, kF}},
                  {"detach_norm", 1, {kF * 2}},
                  {"detach_norm", 2, {kSquare}},
                  {"detach_norm_backward", 0, {kB * 3, kB * 3}}}});
  all.push_back({[](Given& d) {
                   const DetachNormAttrs mean{.detach_variance = false};
                   d.differentiate(ops::detach_norm(d.g, row(d), mean), {1, 3});
                 },
                 {{"detach_norm_backward", 0, {kB * 3 + 8, kB * 3 + 8}}}});
  // |phi| is at most 1 + 2 * 0.1.
  all.push_back({[](Given& d) {
                   d.differentiate(ops::ada_norm(d.g, row(d)), {1, 3});
                 },
                 {{"ada_norm", 0, {kF * 1.2, kF * 1.2}},
                  {"ada_norm", 1, {kF * 2}},
                  {"ada_norm", 2, {kSquare}},
                  {"ada_norm_backward", 0, {kB * 3.6 + 9.6, kB * 3.6 + 9.6}}}});
  // A row of length 5: xhat = 0.6 and 0.8.
  all.push_back({[](Given& d) {
                   const Value x = d.floats({1, 2}, {3, 4}), gain = d.floats({1}, {5});
                   d.differentiate(ops::scale_norm(d.g, x, gain), {1, 3});
                 },
                 {{"scale_norm", 0, {kF * 5, kF * 5}},
                  {"scale_norm", 1, {kSquare / 5}},
                  {"scale_norm_backward", 0, {kB * 3, kB * 3}},
                  {"scale_norm_backward", 1, {kB * 3}}}});
}

void add_part_norms(std::vector<HandCase>& all) {
  // The second group has mean 3 and deviation 2.
  all.push_back({[](Given& d) {
                   const Value x = d.floats({1, 4}, {1, 3, 1, 5});
                   const ops::NormAffine affine{d.floats({4}, {2, 2, 2, 2}),
                                                d.floats({4}, {0.5, 0.5, 0.5, 0.5})};
                   d.differentiate(ops::group_norm(d.g, x, affine, {.groups = 2}), {1, 3, 1, 3});
                 },
                 {{"group_norm", 0, {kF * 2, kF * 2.5, kF * 2, kF * 2.5}},
                  {"group_norm", 1, {kF * 2, kF * 3}},
                  {"group_norm", 2, {kSquare, kSquare / 2}},
                  {"group_norm_backward", 0, {kDx, kDx, kB * 3 + 6, kB * 3 + 6}},
                  {"group_norm_backward", 1, {kDgain1, kDgain3, kB + 1.5, 3 * (kB + 1.5)}},
                  {"group_norm_backward", 2, {kB, kB * 3, kB, kB * 3}}}});
  all.push_back({[](Given& d) {
                   d.differentiate(ops::group_scaling(d.g, row(d)), {1, 3});
                 },
                 {{"group_scaling", 0, {kF, kF * 3 * kR}},
                  {"group_scaling", 1, {kSquare * kR}},
                  {"group_scaling_backward", 0, {kB * 3 * kR, kB * 3 * kR}}}});
  all.push_back({[](Given& d) {
                   const Value x = d.floats({1, 2, 1}, {1, 3});
                   d.differentiate(ops::instance_norm(d.g, x, one(d), {}, {}), {1, 3});
                 },
                 {{"instance_norm", 0, {kF * 2, kF * 2.5}},
                  {"instance_norm", 1, {kF * 2}},
                  {"instance_norm", 2, {kSquare}},
                  {"instance_norm_backward", 0, {kDx, kDx}},
                  {"instance_norm_backward", 1, {kDgain1 + kDgain3}},
                  {"instance_norm_backward", 2, {kB * 4}}}});
  // A unit whose weights have the length 5.
  all.push_back({[](Given& d) {
                   const Value v = d.floats({1, 2}, {3, 4}), g = d.floats({1}, {2});
                   d.differentiate(ops::weight_norm(d.g, v, g), {1, 3});
                 },
                 {{"weight_norm", 0, {kF * 1.2, kF * 1.6}},
                  {"weight_norm", 1, {kF / 5}},
                  {"weight_norm_backward", 0, {kB * 0.4 * 2.8, kB * 0.4 * 5.4}},
                  {"weight_norm_backward", 1, {kB * 3}}}});
}

void add_batch_norms(std::vector<HandCase>& all) {
  // The running mean is 5 and becomes 4.7, the variance 9 and 8.2.
  all.push_back({[](Given& d) {
                   const Value x = column(d), mean = d.state({1}, {5}), var = d.state({1}, {9});
                   d.differentiate(ops::batch_norm(d.g, x, one(d), {mean, var}, {}), {1, 3});
                 },
                 {{"batch_norm", 0, {kF * 2, kF * 2.5}},
                  {"batch_norm", 1, {kF * 2}},
                  {"batch_norm", 2, {kSquare}},
                  {"batch_norm", 3, {kF * 5}},
                  {"batch_norm", 4, {kSquare * 9}},
                  {"batch_norm_backward", 0, {kDx, kDx}},
                  {"batch_norm_backward", 1, {kDgain1 + kDgain3}},
                  {"batch_norm_backward", 2, {kB * 4}}}});
  // The running mean is 5 and becomes 3.5, the variance 7 and 4: penalties with the derivatives
  // 2 0.5 (2 - 3.5) / 2 and 2 3 (1 - 2) / 2, of which the latter goes along xhat.
  all.push_back({[](Given& d) {
                   const Value x = column(d), mean = d.state({1}, {5}), var = d.state({1}, {7});
                   const BatchNormAttrs attrs{
                       .keep = 0.5, .mean_penalty = 0.5, .deviation_penalty = 3};
                   d.differentiate(ops::batch_norm(d.g, x, one(d), {mean, var}, attrs), {1, 3});
                 },
                 {{"batch_norm_backward", 0, std::vector<double>(2, kDx + kB * (0.75 + 3) + 2 * 3)},
                  {"batch_norm_backward", 1, {kDgain1 + kDgain3}},
                  {"batch_norm_backward", 2, {kB * 4}}}});
  // r = 1 / 2 and d = (2 - 1) / 2, which has the errors of both means and of the deviation.
  const double of_d = 0.5 + (2 + 1 + 1) / 2.0;
  all.push_back({[](Given& d) {
                   const Value x = column(d), mean = d.state({1}, {1}), std = d.state({1}, {2});
                   const Value step = d.ints({}, {0});
                   d.differentiate(ops::batch_renorm(d.g, x, one(d), {mean, std, step, {}},
                                                     {.r_max = 3, .d_max = 5}),
                                   {1, 3});
                 },
                 {{"batch_renorm", 0, {kF * 2 * (0.5 + of_d), kF * 2 * (0.5 + of_d)}},
                  {"batch_renorm", 1, {kF * 2}},
                  {"batch_renorm", 2, {kSquare}},
                  {"batch_renorm", 3, {kSquare / 2}},
                  {"batch_renorm", 4, {kF * of_d}},
                  {"batch_renorm", 5, {kF * 2}},
                  {"batch_renorm", 6, {kSquare * 2}},
                  {"batch_renorm_backward", 0, {kDx / 2, kDx / 2}},
                  {"batch_renorm_backward", 1, {4 * kB * (0.5 + 0.5) + 4}},
                  {"batch_renorm_backward", 2, {kB * 4}}}});
}

// The next nu lies between nu, which is -8, and the mean of |g xhat|; no row has other steps' yet.
void add_unified_norm(std::vector<HandCase>& all) {
  const double of_slope = kB * 10 * kR;  // the mean of |g xhat|
  all.push_back(
      {[](Given& d) {
         const Value x = column(d), x2 = d.state({2, 1}, {0, 0}), gz = d.state({2, 1}, {0, 7});
         const ops::UnifiedNormState state{
             x2, gz, d.state({1}, {1}), d.state({1}, {-8}), d.ints({}, {0}), {}};
         d.differentiate(ops::unified_norm(d.g, x, one(d), state, {.m = 2}), {1, 3});
       },
       {{"unified_norm", 0, {kF * 2, kY3}},
        {"unified_norm", 1, {kSquare * kR}},
        {"unified_norm", 2, {kSquare}},
        {"unified_norm", 3, {0}},
        {"unified_norm", 4, {0, kSquare * 5}},
        {"unified_norm", 5, {kSquare * 1.4}},
        {"unified_norm_backward", 0, {kB * kR * 24 * kR, kB * kR * 24 * kR}},
        {"unified_norm_backward", 1, {kDgainR}},
        {"unified_norm_backward", 2, {kB * 4}},
        {"unified_norm_backward", 3, {of_slope, of_slope}},
        {"unified_norm_backward", 4, {kB * 8}}}});
}

void add_quadratic_norms(std::vector<HandCase>& all) {
  const double of_slope = kB * 10 * kR;  // the mean of |g xhat|
  // The averages over former steps, of which the backward has 7, are not taken yet.
  all.push_back(
      {[](Given& d) {
         const Value x = column(d), x2 = d.state({2, 1}, {0, 0}), gz = d.state({2, 1}, {0, 7});
         const ops::MabnState state{x2, gz, d.state({1}, {1}), d.ints({}, {0}), {}};
         d.differentiate(ops::mabn(d.g, x, one(d), state, {.m = 2}), {1, 3});
       },
       {{"mabn", 0, {kF * 2, kY3}},
        {"mabn", 1, {kSquare * kR}},
        {"mabn", 2, {kSquare}},
        {"mabn", 3, {0, kSquare * 5}},
        {"mabn", 4, {kSquare * 1.08}},
        {"mabn_backward", 0, {kB * kR * 21 * kR, kB * kR * 21 * kR}},
        {"mabn_backward", 1, {kDgainR}},
        {"mabn_backward", 2, {kB * 4}},
        {"mabn_backward", 3, {of_slope, of_slope}}}});
  all.push_back({[](Given& d) {
                   const Value x = column(d);
                   d.differentiate(ops::pn_v(d.g, x, one(d), {d.state({1}, {1}), {}}, {}), {1, 3});
                 },
                 {{"pn_v", 0, {kF * 2, kY3}},
                  {"pn_v", 1, {kSquare * kR}},
                  {"pn_v", 2, {kSquare * 1.4}},
                  {"pn_v_backward", 0, {kB * 6 * kR, kB * 6 * kR}},
                  {"pn_v_backward", 1, {kDgainR}},
                  {"pn_v_backward", 2, {kB * 4}}}});
  // psi^2 = 4: xhat = 1 / 2 and 3 / 2, Gamma = 1.25; nu = 5 counts for more than g.
  const double of_nu = 5 * (1 + 0.1 * 1.25) + 0.1 * 5;
  all.push_back({[](Given& d) {
                   const Value x = column(d), psi2 = d.state({1}, {4}), nu = d.state({1}, {5});
                   d.differentiate(ops::power_norm(d.g, x, one(d), {psi2, nu, {}, {}}, {}), {1, 3});
                 },
                 {{"power_norm", 0, {kF * 2, kF * 3.5}},
                  {"power_norm", 1, {kSquare / 2}},
                  {"power_norm", 2, {kSquare * kR}},
                  {"power_norm", 3, {kSquare * 1.25}},
                  {"power_norm", 4, {kSquare * 4.1}},
                  {"power_norm", 6, {kSquare * 0.125}},
                  {"power_norm", 7, {kSquare * 5}},
                  {"power_norm_backward", 0, {kB * kR * 7.5, kB * kR * 7.5}},
                  {"power_norm_backward", 1, {kB * 5}},
                  {"power_norm_backward", 2, {kB * 4}},
                  {"power_norm_backward", 3, {kB * of_nu}}}});
}

// x = (3, 4) has rstd sqrt(0.08), and with b = (1, -0.75) a score of 0 whose terms have the size 6.
void add_scored(std::vector<HandCase>& all) {
  const double r = std::sqrt(0.08), of_a = 5 * (1 * 3 + 2 * 4) * r, own = r * 4;
  all.push_back(
      {[](Given& d) {
         const Value x = d.floats({1, 2}, {3, 4}), gain = d.floats({2}, {2, 2}),
                     a = d.floats({2}, {5, 5}), b = d.floats({2}, {1, -0.75F});
         d.differentiate(ops::seed_norm(d.g, x, {gain, a, b}, {.eps = 0}), {1, 2});
       },
       {{"seed_norm", 0, {kF * 2 + 5 * 3 * r * kF * 6, kF * 2 * 4 * r + 5 * 4 * r * kF * 6}},
        {"seed_norm", 1, {kSquare * r}},
        {"seed_norm", 2, {kF * 6}},
        {"seed_norm_backward", 0, {kB * (own + of_a), kB * (own + of_a * 0.75)}},
        {"seed_norm_backward", 1, {kB * 3 * r, kB * 8 * r}},
        {"seed_norm_backward", 2, {0, 0}},
        {"seed_norm_backward", 3, {kB * of_a * 3, kB * of_a * 4}}}});
}

// An element off by e moves f by f' e and f' by f'' e; f is off by 4.4 or 3.6 of itself, f' by 5.
void add_curves(std::vector<HandCase>& all) {
  // tanh(ln 2) = 0.6 with the derivatives 0.64 and -0.768, where u is off by 2 u; and tanh(0).
  constexpr double kLn2 = 0.693147, kT = 2 * kLn2 * 0.64 + 4.4 * 0.6;
  constexpr double kSlope = 2 * kLn2 * 0.768 + 5 * 0.64, kK = 3 * kSlope + 2 * 1.92;
  all.push_back({[](Given& d) {
                   const Value x = d.floats({1, 2}, {0.6931472F, 0});
                   const ops::NormAffine affine{d.floats({2}, {3, 3}), d.floats({2}, {0.5, 0.5})};
                   d.differentiate(ops::dyt(d.g, x, affine, d.floats({1}, {1})), {1, 2});
                 },
                 {{"dyt", 0, {3 * kT + 1.8 + 2.3, 0.5}},
                  {"dyt_backward", 0, {kK + 1.92, 6 * 5 + 3 * 6}},
                  {"dyt_backward", 1, {kT + 0.6 + kB * 0.6, 0}},
                  {"dyt_backward", 2, {kB, 2 * kB}},
                  {"dyt_backward", 3, {(kK + 1.92 + kB * 1.92) * kLn2}}}});
  // erf(1 - 1/2) = 0.5205 with the derivatives 0.8788 and -0.8788, where u is off by 1 + 0.5.
  constexpr double kF1 = 0.8788, kErf = 1.5 * kF1 + 3.6 * 0.5205, kErfK = 6 * 6.5 * kF1 + 12 * kF1;
  all.push_back({[](Given& d) {
                   const Value x = d.floats({1, 1}, {1});
                   const ops::NormAffine affine{d.floats({1}, {2}), d.floats({1}, {-1})};
                   d.differentiate(
                       ops::derf(d.g, x, affine, {d.floats({1}, {1}), d.floats({1}, {-0.5F})}),
                       {3});
                 },
                 {{"derf", 0, {2 * kErf + 1.041}},
                  {"derf_backward", 0, {kErfK + 6 * kF1}},
                  {"derf_backward", 1, {3 * kErf + 1.56 * (1 + kB)}},
                  {"derf_backward", 2, {kB * 3}},
                  {"derf_backward", 3, {kErfK + 6 * kF1 * (1 + kB)}},
                  {"derf_backward", 4, {kErfK + 6 * kF1 * kB}}}});
}

}  // namespace

const std::vector<HandCase>& norm_hand_cases() {
  static const std::vector<HandCase> cases = [] {
    std::vector<HandCase> all;
    for (auto add : {add_row_norms, add_other_row_norms, add_part_norms, add_batch_norms,
                     add_quadratic_norms, add_unified_norm, add_scored, add_curves}) {
      add(all);
    }
    return all;
  }();
  return cases;
}

}  // namespace keel::compare
