// Made-up numbers for the studies of algebra: within their bounds by a tenth, and beyond them.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "studies/verdicts.h"
#include "tests/studies/verdict_case.h"

namespace keel::study {
namespace {

constexpr double kIn = 0.9e-12, kOut = 1.1e-12;        // of what may be off by rounding
constexpr double kSeenIn = 1.1e-3, kSeenOut = 0.9e-3;  // of what must not be 0
constexpr double kTightIn = 0.9 * 128e-12, kTightOut = 1.1 * 128e-12;

VerdictCase doubling_case(const std::string& norm, double trace) {
  using N = DoublingNumbers;
  std::vector<Spoil<N>> spoils{
      {"derivatives as printed", [](N& n) { n.formula = kOut; }},
      {"tr(F_ww), all rows doubled", [=](N& n) { n.trace = trace + kOut; }}};
  if (norm == "batchnorm" || norm == "weightnorm") {
    spoils.push_back({"own block less 1/4", [](N& n) { n.own = kOut; }});
    spoils.push_back({"cross block less 1/2", [](N& n) { n.cross = kOut; }});
    spoils.push_back({"another block less itself", [](N& n) { n.other = kOut; }});
  }
  return verdict_case<N>(
      "fisher", {kIn, trace + kIn, kIn, kIn, kIn},
      [norm](const N& n, Result& r) { judge_doubling(norm, n, r); }, spoils);
}

VerdictCase gain_case(const std::string& norm, double factor) {
  using N = GainNumbers;
  return verdict_case<N>("fisher", {factor * kIn, kIn},
                         [norm](const N& n, Result& r) { judge_gains(norm, n, r); },
                         {{"x 10: gain metric less " + std::to_string(int(factor)) + " of it",
                           [factor](N& n) { n.data = factor * kOut; }},
                          {"W 10: gain metric less itself", [](N& n) { n.weights = kOut; }}});
}

using Steps = std::vector<StepNumbers>;

// From 2.648 degrees at scale 1, as batchnorm is specified.
Steps batchnorm_steps() {
  Steps steps;
  const double one = std::tan(2.648 * std::numbers::pi / 180);
  for (const double s : {0.5, 1.0, 2.0, 4.0}) {
    steps.push_back({std::atan(one / (s * s)), 3 / s, kIn, kIn});
  }
  return steps;
}

// All angles larger, so that tan(angle) goes as 1 / s^2 still.
void stretch(Steps& steps, double factor) {
  for (StepNumbers& step : steps) step.angle = std::atan(factor * std::tan(step.angle));
}

VerdictCase step_case(const std::string& norm, const Steps& steps, bool sees_rows) {
  std::vector<Spoil<Steps>> spoils{
      {"tan(angle) as 1 / s^2", [](Steps& s) { s[3].angle *= 1 + 2e-12; }},
      {"|dW| as 1 / s", [](Steps& s) { s[2].gradient *= 1 + 2e-12; }},
      {"|cos| of W and", [](Steps& s) { s[0].cosine = kOut; }},
      {"|cos| of a row of W", [sees_rows](Steps& s) {
         for (StepNumbers& step : s) step.row_cosine = sees_rows ? kSeenOut : kOut;
       }}};
  return verdict_case<Steps>(
      "fisher", steps, [norm](const Steps& s, Result& r) { judge_steps(norm, s, r); }, spoils);
}

void add_step_cases(std::vector<VerdictCase>& cases) {
  Steps steps = batchnorm_steps();
  cases.push_back(step_case("weightnorm", steps, false));
  for (StepNumbers& step : steps) step.row_cosine = kSeenIn;
  cases.push_back(step_case("layernorm", steps, true));
  cases.push_back(verdict_case<Steps>(
      "fisher", {{0.1, 3.33, 0.11, 0}, {0.1, 1.5, 0.11, 0}},
      [](const Steps& s, Result& r) { judge_steps("none", s, r); },
      {{"|dW| is not as 1 / s", [](Steps& s) { s[0].gradient = 3.27; }},
       {"|cos| of a row of W", [](Steps& s) { s[0].row_cosine = s[1].row_cosine = 0.09; }}}));
}

// A claim of its own for the angle of each scale, one at a time: that at s with the bound at half a
// unit of the last digit that is specified.
TEST_CASE("studies: batchnorm's steps turn by the angles that are specified") {
  const auto failed = [](const Steps& steps) {
    Result result;
    judge_steps("batchnorm", steps, result);
    std::vector<std::string> claims;
    for (const Check& c : result.checks) {
      if (!c.holds) claims.push_back(c.claim);
    }
    return claims;
  };
  CHECK(failed(batchnorm_steps()).empty());
  const double more[] = {0.006, 0.008, 0.004, 0.001};  // degrees
  for (std::size_t i = 0; i < 4; ++i) {
    CAPTURE(i);
    Steps steps = batchnorm_steps();
    steps[i].angle += more[i] * std::numbers::pi / 180;
    const std::vector<std::string> claims = failed(steps);
    const auto claim = fmt::format("batchnorm: angle at s = {}, degrees", kStepScales[i]);
    CHECK(std::ranges::find(claims, claim) != claims.end());
  }
  Steps steps = batchnorm_steps();
  stretch(steps, 1.01);
  CHECK(failed(steps).size() == 4);
}

using Moves = std::vector<Moved>;

void add_invariance_cases(std::vector<VerdictCase>& cases) {
  cases.push_back(verdict_case<Moves>(
      "invariance", {{true, kIn}, {false, 0.055}, {true, 0}, {false, 7}},
      [](const Moves& m, Result& r) { judge_invariance("norm", m, r); },
      {{"the largest change where it is invariant", [](Moves& m) { m[2].by = kOut; }},
       {"the least change where it is not", [](Moves& m) { m[1].by = 0.045; }}}));
  cases.push_back(verdict_case<double>("invariance", kIn,
                                       [](double e, Result& r) { judge_flip("norm", e, r); },
                                       {{"negative number flips", [](double& e) { e = kOut; }}}));
  cases.push_back(verdict_case<double>("invariance", 2.7 * kIn,
                                       [](double e, Result& r) { judge_linear(e, 2.7, r); },
                                       {{"linear in X", [](double& e) { e = 2.7 * kOut; }}}));
  cases.push_back(verdict_case<double>(
      "invariance", kIn, [](double e, Result& r) { judge_evaluation("a", "b", e, r); },
      {{"a, by the batch's statistics: less b", [](double& e) { e = kOut; }}}));
}

void add_restoring_cases(std::vector<VerdictCase>& cases) {
  for (const bool restores : {true, false}) {
    cases.push_back(verdict_case<double>(
        "invariance", restores ? kIn : 0.055,
        [restores](double e, Result& r) { judge_restoring("a", restores, e, r); },
        {{"restore a", [restores](double& e) { e = restores ? kOut : 0.045; }}}));
  }
}

using Features = std::vector<FeatureGradient>;

void add_lemma2_cases(std::vector<VerdictCase>& cases) {
  // |dx| / |dy| is 0.8 sqrt(1.5) = 0.98 and 2 sqrt(0.3025) = 1.1.
  const Features features{{1.5, 1.5 + kIn, 1, 0.8}, {0.3025, 0.3025, 1, 2}};
  const auto judge = [](double eps) {
    return [eps](const Features& f, Result& r) { judge_features("PN-V", eps, worst_of(f), r); };
  };
  const Spoil<Features> off{"error of the identity", [](Features&f) { f[0].claimed += kOut; }},
      grows{"where gain <= s",
            [](Features&f) {
              f[0] = {1.6, 1.6, 1, 0.8};
            }},
      shrinks{"where gain > s", [](Features&f) {
                f[1] = {0.2, 0.2, 1, 2};
              }};
  cases.push_back(verdict_case<Features>("lemma2", features, judge(0), {off, grows, shrinks}));
  cases.push_back(verdict_case<Features>("lemma2", features, judge(0.5), {off, grows}));
}

void add_theorem1_cases(std::vector<VerdictCase>& cases) {
  const Detaching &detached = detachings()[0], &simple = detachings()[1];
  for (const char* study : {"theorem1", "theorem1-training"}) {
    cases.push_back(verdict_case<RowWorst>(
        study, {kIn, kIn, 1 + kIn},
        [&](const RowWorst& w, Result& r) { judge_rows("x: ", detached, w, r); },
        {{"mean(dx) is mean(g) / s", [](RowWorst& w) { w.mean = kOut; }},
         {"var(dx) s^2 is var(g)", [](RowWorst& w) { w.variance = kOut; }},
         {"is at most 1", [](RowWorst& w) { w.ratio = 1 + kOut; }}}));
  }
  using Ends = std::pair<double, double>;
  cases.push_back(
      verdict_case<Ends>("theorem1", {1 - kIn, kIn},
                         [](const Ends& e, Result& r) { judge_ends(e.first, e.second, r); },
                         {{"is 1 where", [](Ends& e) { e.first = 1 - kOut; }},
                          {"is 0 where", [](Ends& e) { e.second = kOut; }}}));
  using Ratios = std::vector<double>;
  cases.push_back(verdict_case<Ratios>(
      "theorem1-training", {0.3, 1 - kSeenIn, 0.9},
      [&](const Ratios& ratios, Result& r) { judge_depths(simple, ratios, r); },
      {{"below 1 at every depth", [](Ratios& ratios) { ratios[1] = 1 - kSeenOut; }}}));
  cases.push_back(verdict_case<Ratios>(
      "theorem1-training", {1}, [&](const Ratios& of, Result& r) { judge_depths(detached, of, r); },
      {}));
}

ScalingExamples good_examples() {
  ScalingExamples good{{2 - kTightIn, 2, {-0.2, -0.2, -0.2, -0.2, -0.2 + kTightIn}},
                       {2, 2 + kTightIn, {}},
                       {0.99, 0.99 + kSeenIn, {0, 0, 0, 0, 0}}};
  for (const std::int64_t width : kScalingWidths) {
    good.square.skew.push_back(0.3 * std::sqrt(double(width) / 6) - 0.2);
  }
  return good;
}

void add_theorem2_cases(std::vector<VerdictCase>& cases) {
  using A = AdanormNumbers;
  cases.push_back(verdict_case<A>("theorem2", {kTightIn, kIn, kTightIn}, judge_adanorm,
                                  {{"the skew row", [](A& a) { a.skew = kTightOut; }},
                                   {"z is C (1 - k y) y", [](A& a) { a.formula = kOut; }},
                                   {"mean(z) is -C k", [](A& a) { a.mean_z = kTightOut; }}}));
  using E = ScalingExamples;
  const std::vector<double> printed{0.29, 0.78, 1.76, 3.72, 7.64};
  std::vector<Spoil<E>> spoils{
      {"linear phi: mean(phi) is C", [](E& e) { e.linear.low = 2 - kTightOut; }},
      {"linear phi: mean(z)", [](E& e) { e.linear.skew.back() = -0.2 + kTightOut; }},
      {"quadratic phi: mean(phi) is C", [](E& e) { e.square.high = 2 + kTightOut; }},
      {"mean(phi) is not constant", [](E& e) { e.sine.high = 0.99 + kSeenOut; }}};
  for (std::size_t w = 0; w < 5; ++w) {
    const std::string width = fmt::format("quadratic phi, width {}: ", kScalingWidths[w]);
    spoils.push_back({width + "mean(z) /", [w](E& e) { e.square.skew[w] *= 1 + 2 * kTightOut; }});
    spoils.push_back({width, [w, printed](E& e) { e.square.skew[w] = printed[w] + 0.0051; }});
    spoils.push_back(
        {width + "mean(z) /", [w, printed](E& e) { e.square.skew[w] = printed[w] - 0.0049; }});
  }
  cases.push_back(verdict_case<E>("theorem2", good_examples(), judge_examples, spoils));
  for (const int degree : {0, 1, 2, 3, 4}) {
    cases.push_back(verdict_case<int>(
        "theorem2", degree < 2 ? 20 : 0,
        [degree](int both, Result& r) { judge_polynomials(degree, both, r); },
        {{"how many are both", [degree](int& both) { both += degree < 2 ? -1 : 1; }}}));
  }
}

// k = 0.5: of rows of 5 numbers one spike turns none, of 6 one.
void add_sign_cases(std::vector<VerdictCase>& cases) {
  using N = SignNumbers;
  cases.push_back(verdict_case<N>(
      "theorem2", {0.25, 0.2, 0.25 + kIn, 0, 1.0 / 6 - kIn},
      [](const N& n, Result& r) { judge_signs(0.5, n, r); },
      {{"the largest share of a row with |y| >= 1 / k", [](N& n) { n.beyond = 0.2501; }},
       {"that share of a row of two spikes", [](N& n) { n.pair = 0.25 - kOut; }},
       {"whose sign is turned", [](N& n) { n.turned = 0.2001; }},
       {"one spike in 1 / k^2 + 1", [](N& n) { n.spike = 0.2; }},
       {"one spike in 1 / k^2 + 2", [](N& n) { n.longer_spike = 0; }}}));
}

// An error in proportion to delta; in proportion to its square; and one that is too large.
void add_divergence_cases(std::vector<VerdictCase>& cases) {
  using Errors = std::vector<double>;
  cases.push_back(
      verdict_case<Errors>("fisher", {0.5, 0.1, 0.0099},
                           [](const Errors& e, Result& r) { judge_divergences("a", e, r); },
                           {{"of which power of delta", [](Errors& e) { e[1] = 0.115; }},
                            {"of which power of delta", [](Errors& e) { e[1] = 0.085; }},
                            {"for the smallest delta", [](Errors& e) {
                               e = {0.5, 0.102, 0.0101};
                             }}}));
}

void add_theorem4_cases(std::vector<VerdictCase>& cases) {
  using N = RecursionNumbers;
  cases.push_back(verdict_case<N>("theorem4", {kIn, 1, 1 + kIn, 1 + kIn},
                                  [](const N& n, Result& r) { judge_recursion("x: ", n, r); },
                                  {{"follow the definition", [](N& n) { n.error = kOut; }},
                                   {"(1 - alpha) Gamma", [](N& n) { n.contraction = 1.001; }},
                                   {"x: |nu| / N", [](N& n) { n.used = 1 + kOut; }},
                                   {"|dx| psi", [](N& n) { n.dx_used = 1 + kOut; }}}));
  for (const bool scaled : {true, false}) {
    std::vector<Spoil<N>> spoils{{"follows the recursion", [](N& n) { n.error = 1.1e-5; }},
                                 {"|nu| / N while", [](N& n) { n.used = 1 + 1.1e-5; }}};
    if (scaled) spoils.push_back({"x: (1 - alpha) Gamma", [](N& n) { n.contraction = 1.001; }});
    cases.push_back(verdict_case<N>(
        "theorem4-training", {0.9e-5, scaled ? 1.0 : 40.0, 1 + 0.9e-5, 0},
        [scaled](const N& n, Result& r) { judge_trained_recursion("x", scaled, n, r); }, spoils));
  }
  const auto divergence = [](double gamma, double nu) {
    return verdict_case<double>("theorem4", nu * (1 + kIn),
                                [gamma](double n, Result& r) { judge_divergence(gamma, n, r); },
                                {{"|1 - 0.1 Gamma|^200", [](double& n) { n *= 1 + 2 * kOut; }}});
  };
  cases.push_back(divergence(19, std::pow(0.9, 200)));
  cases.push_back(divergence(20, 1));
}

TEST_CASE("studies: above its limit PowerNorm's recursion grows as theorem 4 says") {
  const double right = std::pow(1.1, 200);
  const auto holds = [](double nu) {
    Result result;
    judge_divergence(21, nu, result);
    return std::pair(result.checks.at(0).holds, result.checks.at(1).holds);
  };
  CHECK(holds(right) == std::pair(true, true));
  CHECK(holds(1.94e8) == std::pair(false, true));
  CHECK(holds(1.96e8) == std::pair(false, false));
  CHECK(holds(1.84e8) == std::pair(false, false));
}

VerdictCase length_case(BlindTo blind_to) {
  using N = LengthNumbers;
  const bool units = blind_to == BlindTo::kColumn, layers = blind_to != BlindTo::kNone;
  const N good{units ? kIn : kSeenIn, layers ? kIn : kSeenIn, units ? kIn : kOut, kIn};
  std::vector<Spoil<N>> spoils{
      {"|cos| of a unit's", [=](N& n) { n.unit_cosine = units ? kOut : kSeenOut; }},
      {"a unit lost", [=](N& n) { n.unit_loss = units ? kOut : kIn; }},
      {"|cos| of a layer's", [=](N& n) { n.cosine = layers ? kOut : kSeenOut; }}};
  if (layers) spoils.push_back({"a layer lost", [](N& n) { n.loss = kOut; }});
  return verdict_case<N>(
      "fisher-training", good,
      [=](const N& n, Result& r) { judge_lengths("norm", blind_to, n, r); }, spoils);
}

}  // namespace

std::vector<VerdictCase> exact_verdict_cases() {
  std::vector<VerdictCase> cases;
  for (const char* norm : {"batchnorm", "weightnorm", "layernorm"}) {
    cases.push_back(doubling_case(norm, 0.25));
  }
  cases.push_back(doubling_case("none", 1));
  for (const char* norm : {"none", "weightnorm"}) cases.push_back(gain_case(norm, 100));
  for (const char* norm : {"batchnorm", "layernorm"}) cases.push_back(gain_case(norm, 1));
  cases.push_back(verdict_case<double>("fisher", kIn, judge_moved_rows,
                                       {{"none, moved along", [](double& e) { e = kOut; }}}));
  using P = PrintedGainNumbers;
  cases.push_back(
      verdict_case<P>("fisher", {kIn, kSeenIn, kSeenIn}, judge_printed_gains,
                      {{"constant Cov, diagonal", [](P& p) { p.same_diagonal = kOut; }},
                       {"constant Cov, off the diagonal", [](P& p) { p.same_rest = kSeenOut; }},
                       {"Cov of each case, diagonal", [](P& p) { p.own_diagonal = kSeenOut; }}}));
  add_step_cases(cases);
  add_invariance_cases(cases);
  add_restoring_cases(cases);
  add_lemma2_cases(cases);
  add_theorem1_cases(cases);
  add_theorem2_cases(cases);
  add_sign_cases(cases);
  add_divergence_cases(cases);
  add_theorem4_cases(cases);
  for (const BlindTo blind_to : {BlindTo::kNone, BlindTo::kColumn, BlindTo::kMatrix}) {
    cases.push_back(length_case(blind_to));
  }
  return cases;
}

}  // namespace keel::study
