// The verdicts of studies of algebra, which hold up to rounding.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "studies/lab.h"
#include "studies/verdicts.h"

namespace keel::study {
namespace {

// Sums have up to 4096 elements of size up to sqrt(4096), times C.
constexpr double kTight = 64 * kScalingC * kRounding;
// The least value that counts as not 0, though it might be so by chance.
constexpr double kSeen = 1e-3;
constexpr double kChange = 0.05;  // the least by which an output that is not invariant moves
// Gamma and Lambda are sums of 128 products in float32: within 128 * 2^-24 = 8e-6 of their sizes.
constexpr double kFloat = 1e-5;

double in_degrees(double radians) { return radians * 180 / std::numbers::pi; }

}  // namespace

void judge_doubling(const std::string& norm, const DoublingNumbers& of, Result& result) {
  result.at_most(norm + ": error of the derivatives as printed", of.formula, kRounding);
  result.near(norm + ": tr(F_ww), all rows doubled", of.trace, norm == "none" ? 1 : 0.25,
              kRounding);
  if (norm != "batchnorm" && norm != "weightnorm") return;
  result.at_most(norm + ", w_1 doubled: own block less 1/4 of it", of.own, kRounding);
  result.at_most(norm + ", w_1 doubled: cross block less 1/2 of it", of.cross, kRounding);
  result.at_most(norm + ", w_1 doubled: another block less itself", of.other, kRounding);
}

double gain_factor(const std::string& norm) {
  return norm == "none" || norm == "weightnorm" ? 100 : 1;
}

void judge_gains(const std::string& norm, const GainNumbers& of, Result& result) {
  const double factor = gain_factor(norm);
  result.at_most(fmt::format("{}, x 10: gain metric less {} of it", norm, factor), of.data,
                 factor * kRounding);
  result.at_most(norm + ", W 10: gain metric less itself", of.weights, kRounding);
}

void judge_moved_rows(double error, Result& result) {
  result.at_most("none, moved along w_i / |w_i|: gain metric less that of weightnorm", error,
                 kRounding);
}

void judge_printed_gains(const PrintedGainNumbers& of, Result& result) {
  const std::string who = "batchnorm: metric by gains less that by biases, ";
  result.at_most(who + "constant Cov, diagonal", of.same_diagonal, kRounding);
  result.above(who + "constant Cov, off the diagonal", of.same_rest, kSeen);
  result.above(who + "Cov of each case, diagonal", of.own_diagonal, kSeen);
}

// The error is a series in delta. Its second term is below a tenth of its first for the middle
// delta, which moves the power by log10(1.1) = 0.04.
void judge_divergences(const std::string& norm, std::span<const double> errors, Result& result) {
  result.near(norm + ": KL / (delta^T F delta / 2) - 1, of which power of delta",
              std::log10(errors[1] / errors[2]), 1, 0.05);
  result.at_most(norm + ": that error for the smallest delta", errors[2], 1e-2);
}

void judge_steps(const std::string& norm, std::span<const StepNumbers> steps, Result& result) {
  const StepNumbers& one = steps[1];
  double turned = 0, slope = 0, row_cosine = 0, whole = 0;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const double s = kStepScales[i];
    take_largest(turned, std::abs(std::tan(steps[i].angle) * s * s / std::tan(one.angle) - 1));
    take_largest(slope, std::abs(steps[i].gradient * s / one.gradient - 1));
    take_largest(row_cosine, steps[i].row_cosine);
    take_largest(whole, steps[i].cosine);
  }
  if (norm == "none") {
    result.above("none: |dW| is not as 1 / s, relative", slope, 0.1);
    return result.above("none: |cos| of a row of W and its gradient", row_cosine, 0.1);
  }
  result.at_most(norm + ": error of tan(angle) as 1 / s^2", turned, kRounding);
  result.at_most(norm + ": error of |dW| as 1 / s", slope, kRounding);
  result.at_most(norm + ": |cos| of W and its gradient", whole, kRounding);
  if (norm == "layernorm") {
    result.above("layernorm: |cos| of a row of W and its gradient", row_cosine, kSeen);
  } else {
    result.at_most(norm + ": |cos| of a row of W and its gradient", row_cosine, kRounding);
  }
  if (norm != "batchnorm") return;
  // As specified; the others follow from that at scale 1.
  constexpr double kAngles[] = {10.48, 2.65, 0.66, 0.166};
  for (std::size_t i = 0; i < steps.size(); ++i) {
    result.near(fmt::format("batchnorm: angle at s = {}, degrees", kStepScales[i]),
                in_degrees(steps[i].angle), kAngles[i], i == 3 ? 0.0005 : 0.005);
  }
}

void judge_invariance(const std::string& norm, std::span<const Moved> moves, Result& result) {
  double kept = 0, least = INFINITY;
  for (const Moved& moved : moves) {
    moved.is_invariant ? take_largest(kept, moved.by) : take_smallest(least, moved.by);
  }
  if (std::ranges::any_of(moves, &Moved::is_invariant)) {
    result.at_most(norm + ": the largest change where it is invariant", kept, kRounding);
  }
  result.above(norm + ": the least change where it is not", least, kChange);
}

void judge_flip(const std::string& norm, double error, Result& result) {
  result.at_most(norm + ": W scaled by a negative number flips y - bias", error, kRounding);
}

void judge_linear(double error, double factor, Result& result) {
  result.at_most("WeightNorm: y - bias is linear in X", error, factor * kRounding);
}

void judge_evaluation(const std::string& norm, const std::string& training, double error,
                      Result& result) {
  result.at_most(fmt::format("{}, by the batch's statistics: less {}", norm, training), error,
                 kRounding);
}

void judge_restoring(const std::string& norm, bool restores, double error, Result& result) {
  if (restores) {
    result.at_most(norm + ": gain = sigma and bias = mu restore a", error, kRounding);
  } else {
    result.above(norm + ": no gain and bias of a feature restore a", error, kChange);
  }
}

double FeatureGradient::error() const { return std::abs(squared - claimed) / size; }
double FeatureGradient::ratio() const { return gain_over_s * std::sqrt(squared / size); }

FeatureWorst worst_of(std::span<const FeatureGradient> features) {
  FeatureWorst worst;
  for (const FeatureGradient& f : features) {
    take_largest(worst.error, f.error());
    take_largest(f.gain_over_s <= 1 ? worst.shrunk : worst.grown, f.ratio());
  }
  return worst;
}

void judge_features(const std::string& norm, double eps, const FeatureWorst& worst,
                    Result& result) {
  const std::string who = fmt::format("{}, eps {}: ", norm, eps);
  result.at_most(who + "error of the identity, relative to |dy|^2", worst.error, kRounding);
  result.at_most(who + "|dx| / |dy| where gain <= s", worst.shrunk, 1);
  if (eps == 0) result.above(who + "|dx| / |dy| where gain > s, largest", worst.grown, 1);
}

void judge_rows(const std::string& who, const Detaching& of, const RowWorst& worst,
                Result& result) {
  result.at_most(who + "mean(dx) is " + of.mean_claim(), worst.mean, kRounding);
  result.at_most(who + "var(dx) s^2 is " + of.variance_claim(), worst.variance, kRounding);
  result.at_most(who + "var(dx) s^2 / var(g) is at most 1", worst.ratio, 1 + kRounding);
}

void judge_ends(double across, double along, Result& result) {
  result.near("layernorm_simple: the ratio is 1 where g is orthogonal to xhat", across, 1,
              kRounding);
  result.at_most("layernorm_simple: the ratio is 0 where g is along xhat", along, kRounding);
}

void judge_depths(const Detaching& of, std::span<const double> ratios, Result& result) {
  if (!of.through_deviation) return;
  result.at_most(of.norm + ": the mean ratio is below 1 at every depth",
                 *std::ranges::max_element(ratios), 1 - kSeen);
}

void judge_adanorm(const AdanormNumbers& of, Result& result) {
  result.at_most("the skew row is its own layernorm_simple", of.skew, kTight);
  result.at_most("adanorm: z is C (1 - k y) y", of.formula, kRounding);
  result.at_most("adanorm: mean(z) is -C k for every row and width", of.mean_z, kTight);
}

double ScalingNumbers::spread() const { return high - low; }
double ScalingNumbers::off(double c) const { return std::max(high - c, c - low); }
double ScalingNumbers::growth() const { return std::abs(skew.back() - skew.front()); }
bool ScalingNumbers::is_constant() const { return spread() < kSeen; }
bool ScalingNumbers::is_bounded() const { return growth() < kSeen; }

void judge_examples(const ScalingExamples& of, Result& result) {
  const ScalingNumbers &linear = of.linear, &square = of.square;
  result.at_most("linear phi: mean(phi) is C for every row and width", linear.off(kScalingC),
                 kTight);
  result.at_most("linear phi: mean(z) does not depend on the width", linear.growth(), kTight);
  result.at_most("quadratic phi: mean(phi) is C as well", square.off(kScalingC), kTight);
  constexpr double kPrinted[] = {0.29, 0.78, 1.76, 3.72, 7.64};
  for (std::size_t w = 0; w < std::size(kScalingWidths); ++w) {
    const std::int64_t width = kScalingWidths[w];
    result.near(fmt::format("quadratic phi, width {}: mean(z) grows", width), square.skew[w],
                kPrinted[w], 0.005);
    result.near(fmt::format("quadratic phi, width {}: mean(z) / (0.3 sqrt(H / 6) - 0.2)", width),
                square.skew[w] / (0.3 * std::sqrt(double(width) / 6) - 0.2), 1, kTight);
  }
  result.above("1 + 0.2 sin y: mean(phi) is not constant", of.sine.spread(), kSeen);
}

void judge_polynomials(int degree, int both, Result& result) {
  result.near(fmt::format("random polynomials of degree {}: how many are both", degree), both,
              degree <= 1 ? kPolynomials : 0, 0);
}

void judge_signs(double k, const SignNumbers& of, Result& result) {
  const double square = k * k;
  const std::string who = fmt::format("k = {}: ", k);
  result.at_most(who + "the largest share of a row with |y| >= 1 / k", of.beyond, square);
  result.near(who + "that share of a row of two spikes", of.pair, square, kRounding);
  result.at_most(who + "the largest share of a row whose sign is turned", of.turned,
                 square / (1 + square));
  result.near(who + "that share of one spike in 1 / k^2 + 1 numbers", of.spike, 0, 0);
  result.near(who + "that share of one spike in 1 / k^2 + 2 numbers", of.longer_spike,
              square / (1 + 2 * square), kRounding);
}

void judge_recursion(const std::string& who, const RecursionNumbers& of, Result& result) {
  result.at_most(who + "(1 - alpha) Gamma", of.contraction, 1);
  result.at_most(who + "|nu| / N", of.used, 1 + kRounding);
  result.at_most(who + "|dx| psi / (|g| + N |xhat|)", of.dx_used, 1 + kRounding);
  result.at_most(who + "dx, nu and psi follow the definition", of.error, kRounding);
}

void judge_divergence(double gamma, double nu, Result& result) {
  // |1 - 0.1 Gamma|^200: each step may round by 4e-16 of (1 - alpha) Gamma.
  result.near(fmt::format("Gamma {}: |nu| / |1 - 0.1 Gamma|^200", gamma),
              nu / std::pow(std::abs(1 - 0.1 * gamma), 200), 1, kRounding);
  if (gamma > 20) result.near("Gamma 21 diverges", nu, 1.9e8, 0.05e8);
}

void judge_trained_recursion(const std::string& label, bool layer_scale, const RecursionNumbers& of,
                             Result& result) {
  result.at_most(label + ": nu follows the recursion", of.error, kFloat);
  result.at_most(label + ": |nu| / N while (1 - alpha) Gamma <= 1", of.used, 1 + kFloat);
  if (layer_scale) result.at_most(label + ": (1 - alpha) Gamma", of.contraction, 1);
}

void judge_lengths(const std::string& norm, BlindTo blind_to, const LengthNumbers& worst,
                   Result& result) {
  const std::string unit_turns = norm + ": |cos| of a unit's weights and their gradient",
                    unit_loses = norm + ": the share of its length that a unit lost in a step",
                    layer_turns = norm + ": |cos| of a layer's weights and their gradient",
                    layer_loses = norm + ": the share of its length that a layer lost in a step";
  if (blind_to == BlindTo::kColumn) {
    result.at_most(unit_turns, worst.unit_cosine, kRounding);
    result.at_most(unit_loses, worst.unit_loss, kRounding);
  } else {
    result.above(unit_turns, worst.unit_cosine, kSeen);
    result.above(unit_loses, worst.unit_loss, kRounding);
  }
  if (blind_to == BlindTo::kNone) return result.above(layer_turns, worst.cosine, kSeen);
  result.at_most(layer_turns, worst.cosine, kRounding);
  result.at_most(layer_loses, worst.loss, kRounding);
}

}  // namespace keel::study
