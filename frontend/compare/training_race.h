// The same training on several backends: where their losses and weights part, and how fast the
// difference grows.
#pragma once

#include "frontend/compare/model_subject.h"

namespace keel::compare {

struct RaceOptions {
  std::int64_t steps = 100;
  bool perturb = false;  // adds a twin of the first backend whose weights start one ulp off
  double parted = 1e-3;  // relative difference of losses that counts as parted
};

// One run beside the one it is compared with.
struct RaceLane {
  std::string name;                 // "onednn", or "onednn + 1 ulp"
  std::string beside;               // the judge or, of a twin, the backend itself
  std::vector<double> losses = {};  // of each step
  // After each step, |w - w'| / |w'| over all parameters, w' being those of the other run.
  std::vector<double> distances = {};
  std::int64_t parted = -1;  // the first step whose losses differ by more than RaceOptions::parted
  // By what factor the distance grows in a step: exp of the slope of a line through its logarithms
  // by least squares; 1 where there are too few.
  double growth = 1;
};

struct Race {
  std::string judge;
  std::vector<double> judge_losses;
  std::vector<RaceLane> lanes;
};

// Trains on the judge and on every backend, with programs as `keel train` compiles them, on the
// subject's batches.
Race run_race(Backend& judge, const std::vector<Backend*>& backends, ModelSubject& subject,
              const RaceOptions& options);

// The distances along the steps as SVG, logarithmic.
std::string race_picture(const Race& race, const std::string& title);

// exp of the slope of log(y) along 0, 1, 2, ..., zeros being left out; 1 for fewer than two points.
double growth_of(std::span<const double> y);

}  // namespace keel::compare
