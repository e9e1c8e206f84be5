// The same training on several backends: at which step their losses and weights part, and how fast
// the difference grows.
#pragma once

#include "frontend/compare/verdicts/step_twins.h"

namespace keel::compare {

struct RaceOptions {
  std::int64_t steps = 100;
  // Adds twins of the first backend whose weights start one ulp off, and a verdict on each backend.
  bool perturb = false;
  double parted = 1e-3;  // relative difference of losses that counts as parted
};

// One run, compared with another.
struct RaceCurve {
  std::string name;                 // "onednn", or "onednn + 1 ulp, twin 3"
  std::string beside;               // the reference's run or, for a twin, the backend's own
  std::vector<double> losses = {};  // of each step
  // After each step, |w - w'| / |w'| over all parameters, where w' are those of the other run.
  std::vector<double> distances = {};
  std::int64_t parted = -1;  // the first step whose losses differ by more than RaceOptions::parted
  // The factor by which the distance grows in a step: exp of the slope of a least-squares line
  // through its logarithms; 1 if there are too few points.
  double growth = 1;
  bool is_twin = false;
};

struct Race {
  std::string reference;
  std::vector<double> reference_losses;
  std::vector<RaceCurve> curves;
  std::vector<StepVerdict> verdicts;  // of each backend, if twins were asked for
};

// Trains on the reference and on every backend, on the subject's batches, with programs compiled as
// `keel train` compiles them.
Race run_race(Backend& reference, const std::vector<Backend*>& backends, ModelSubject& subject,
              const RaceOptions& options);

// The distances along the steps as SVG, logarithmic.
std::string race_picture(const Race& race, const std::string& title);

// exp of the slope of log(y) over 0, 1, 2, ..., without zeros; 1 for fewer than two points.
double growth_of(std::span<const double> y);

}  // namespace keel::compare
