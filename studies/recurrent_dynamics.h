// The numbers and the verdicts of the study recurrent-dynamics.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "studies/study.h"

namespace keel::study {

inline constexpr std::int64_t kDynamicsSteps = 500;
// By which the recurrent weights, orthogonal at first, are multiplied.
inline constexpr double kDynamicsScales[] = {0.5, 1, 2};

// The input of a network: a new one at every step, or one at the first step and zeros after it.
enum class DynamicsInput { kPulse, kEveryStep };
constexpr auto choice_words(DynamicsInput) {
  return std::to_array<std::string_view>({"a pulse", "inputs"});
}

// One network with recurrent weights of one scale, one entry a seed. Orders are those of magnitude,
// log10, by which a size grows.
struct ScaleDynamics {
  std::vector<double> state;     // the size of the state, from the first step to the last
  std::vector<double> gradient;  // the size of the gradient of states, from the last step back
  std::vector<double> spread;    // the largest size of a state by the smallest one
};
// One entry for each of kDynamicsScales.
struct Dynamics {
  DynamicsInput input;
  std::vector<ScaleDynamics> none, layernorm;
};
// Ba, Kiros, Hinton 2016, section 3.1: without a norm sizes grow or shrink from step to step, by
// the scale of the weights; with layernorm the dynamics are "much more stable".
void judge_dynamics(const Dynamics& of, Result& result);

// How far states and gradients with layernorm move, relative to their size, when weights are
// scaled, one entry a seed: the recurrent ones after a pulse, or all of them under inputs.
void judge_rescaled(DynamicsInput input, const std::vector<double>& moved, Result& result);

}  // namespace keel::study
