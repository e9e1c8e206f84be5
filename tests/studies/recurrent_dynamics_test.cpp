// The study recurrent-dynamics: its verdicts on synthetic numbers, and what must come out of it.
#include "studies/recurrent_dynamics.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "backends/backends.h"
#include "tests/studies/short_run.h"
#include "tests/studies/verdict_case.h"

namespace keel::study {
namespace {

// The second seed is safe; the claims hang on the first one.
Dynamics synthetic(DynamicsInput input, const std::vector<double>& gradients) {
  Dynamics made{input, {}, {}};
  for (const double gradient : gradients) {
    made.none.push_back({{-3.1, -9}, {gradient, 3 * gradient}, {8, 8}});
    made.layernorm.push_back({{0, 0}, {0.3, -0.3}, {1.9, 1.1}});
  }
  return made;
}

std::vector<Spoil<Dynamics>> spoils_of_scales() {
  std::vector<Spoil<Dynamics>> spoils;
  for (std::size_t s = 0; s < std::size(kDynamicsScales); ++s) {
    const std::string scale = fmt::format("recurrent weights x {}: ", kDynamicsScales[s]);
    spoils.push_back({"layernorm, " + scale + "the largest size",
                      [s](Dynamics& d) { d.layernorm[s].spread[0] = 2.1; }});
    spoils.push_back({"none less layernorm, " + scale, [s](Dynamics& d) {
                        d.layernorm[s].gradient[0] = -1.1 * std::abs(d.none[s].gradient[0]);
                      }});
  }
  return spoils;
}

VerdictCase pulse_case() {
  std::vector<Spoil<Dynamics>> spoils = spoils_of_scales();
  spoils.push_back({"x 0.5: orders of magnitude by which the state shrinks",
                    [](Dynamics& d) { d.none[0].state[0] = -2.9; }});
  spoils.push_back({"x 0.5: orders of magnitude by which the gradient shrinks",
                    [](Dynamics& d) { d.none[0].gradient[0] = -2.9; }});
  spoils.push_back({"x 2: orders of magnitude by which the gradient grows",
                    [](Dynamics& d) { d.none[2].gradient[0] = 2.9; }});
  return verdict_case<Dynamics>("recurrent-dynamics",
                                synthetic(DynamicsInput::kPulse, {-3.1, -0.4, 3.1}), judge_dynamics,
                                spoils);
}

VerdictCase inputs_case() {
  std::vector<Spoil<Dynamics>> spoils = spoils_of_scales();
  spoils.push_back({"between the gradients of weights x 2 and x 0.5",
                    [](Dynamics& d) { d.none[2].gradient[0] = 0.35; }});
  return verdict_case<Dynamics>("recurrent-dynamics",
                                synthetic(DynamicsInput::kEveryStep, {-2.6, -0.4, 0.5}),
                                judge_dynamics, spoils);
}

VerdictCase rescaled_case(DynamicsInput input) {
  using N = std::vector<double>;
  return verdict_case<N>("recurrent-dynamics", {0, 0.9e-12},
                         [input](const N& n, Result& r) { judge_rescaled(input, n, r); },
                         {{"do not see the scale", [](N& n) { n[0] = 1.1e-12; }}});
}

double measured_of(const Result& result, std::string_view part) {
  const auto found = std::ranges::find_if(
      result.checks, [part](const Check& c) { return c.claim.find(part) != std::string::npos; });
  REQUIRE(found != result.checks.end());
  return found->measured;
}

TEST_CASE("recurrent dynamics: what follows from the formula comes out" *
          doctest::test_suite("slow")) {
  const auto backend = make_backend("reference");
  const Result result = run("recurrent-dynamics", *backend, 3);
  // |h| <= |h'| / 2 and, of the gradient, |dh'| <= |dh| / 2, with an orthogonal U times a half; at
  // the end tanh is nearly the identity, so that there is little more.
  const double halves = double(kDynamicsSteps - 1) * std::log10(2);
  for (const char* of : {"the state shrinks", "the gradient shrinks"}) {
    CAPTURE(std::string(of));
    CHECK(measured_of(result, of) >= halves);
    CHECK(measured_of(result, of) <= halves + 1);
  }
  for (const char* input : {"a pulse", "inputs"}) {
    CAPTURE(std::string(input));
    CHECK(measured_of(result, fmt::format("{}, layernorm: states and gradients", input)) <= 1e-12);
    // tanh of numbers with mean square 1 has a root of the mean square between tanh(1)^2 and 1.
    CHECK(measured_of(result, fmt::format("{}, layernorm, recurrent weights x 1:", input)) < 2);
  }
  REQUIRE(result.tables.size() == 1);
  CHECK(result.tables[0].rows.size() == 1 + 2 * 2 * std::size(kDynamicsScales));
  REQUIRE(result.drawings.size() == 2);
  for (const Drawing& drawing : result.drawings) {
    REQUIRE(drawing.plot.series.size() == 2 * 2 * std::size(kDynamicsScales));
    for (const io::PlotSeries& series : drawing.plot.series) {
      CHECK(std::ssize(series.y) == kDynamicsSteps);
    }
  }
}

}  // namespace

std::vector<VerdictCase> recurrent_verdict_cases() {
  return {pulse_case(), inputs_case(), rescaled_case(DynamicsInput::kPulse),
          rescaled_case(DynamicsInput::kEveryStep)};
}

}  // namespace keel::study
