// The verdicts of recurrent-dynamics.
#include <algorithm>
#include <cmath>

#include "src/core/choice.h"
#include "studies/lab.h"
#include "studies/recurrent_dynamics.h"

namespace keel::study {
namespace {

constexpr double kManyOrders = 3;   // of magnitude, over all steps
constexpr double kSteadyState = 2;  // by which the size of a state may vary

double least_of(const std::vector<double>& values) { return std::ranges::min(values); }
double most_of(const std::vector<double>& values) { return std::ranges::max(values); }

std::string told(DynamicsInput input, const std::string& norm, double scale) {
  return fmt::format("{}, {}, recurrent weights x {}", choice_text(input), norm, scale);
}

void judge_pulse(const Dynamics& of, Result& result) {
  const ScaleDynamics &small = of.none.front(), &large = of.none.back();
  const std::string first = told(of.input, "none", kDynamicsScales[0]),
                    last = told(of.input, "none", *std::rbegin(kDynamicsScales));
  result.above(first + ": orders of magnitude by which the state shrinks", -most_of(small.state),
               kManyOrders);
  result.above(first + ": orders of magnitude by which the gradient shrinks",
               -most_of(small.gradient), kManyOrders);
  result.above(last + ": orders of magnitude by which the gradient grows", least_of(large.gradient),
               kManyOrders);
}

void judge_inputs(const Dynamics& of, Result& result) {
  double least = INFINITY;
  for (std::size_t i = 0; i < of.none.front().gradient.size(); ++i) {
    take_smallest(least, of.none.back().gradient[i] - of.none.front().gradient[i]);
  }
  result.above(
      fmt::format("{}, none: orders of magnitude between the gradients of weights x {} "
                  "and x {}",
                  choice_text(of.input), *std::rbegin(kDynamicsScales), kDynamicsScales[0]),
      least, kManyOrders);
}

}  // namespace

void judge_dynamics(const Dynamics& of, Result& result) {
  if (of.input == DynamicsInput::kPulse) judge_pulse(of, result);
  if (of.input == DynamicsInput::kEveryStep) judge_inputs(of, result);
  for (std::size_t s = 0; s < std::size(kDynamicsScales); ++s) {
    const ScaleDynamics &none = of.none[s], &layernorm = of.layernorm[s];
    result.at_most(told(of.input, "layernorm", kDynamicsScales[s]) +
                       ": the largest size of a state by the smallest",
                   most_of(layernorm.spread), kSteadyState);
    double least = INFINITY;
    for (std::size_t i = 0; i < none.gradient.size(); ++i) {
      take_smallest(least, std::abs(none.gradient[i]) - std::abs(layernorm.gradient[i]));
    }
    result.above(told(of.input, "none less layernorm", kDynamicsScales[s]) +
                     ": orders of magnitude by which the gradient changes",
                 least, 0);
  }
}

void judge_rescaled(DynamicsInput input, const std::vector<double>& moved, Result& result) {
  const char* weights = input == DynamicsInput::kPulse ? "recurrent weights" : "all weights";
  result.at_most(fmt::format("{}, layernorm: states and gradients do not see the scale of {}",
                             choice_text(input), weights),
                 most_of(moved), kRounding);
}

}  // namespace keel::study
