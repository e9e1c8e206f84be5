// Whether rounding explains how a backend's steps of training differ from the reference's.
//
// Weights of two trainings part after a while whatever their cause, because rounding errors grow.
// A single step has no time for that. So every step is taken three times from the backend's own
// state: on the backend, on the reference, and on the backend by kTwins twins, whose parameters
// begin one unit in the last place away. For each variable, the distance of the backend from the
// reference is compared with that of the twins from the backend: a step is further off if it is
// more than kTwins times the largest distance of a twin, and one unit in the last place. The
// rounding of a step counts for less than that, unless a kink (a ReLU, a maximum) lies between two
// results, which one run may cross and another not. Were the backend's rounding kTwins times the
// twins', it would be the one of all kTwins + 1 that crosses it in half of these steps at most.
// A fault shows in all of them. So the count of further steps is checked against a binomial
// distribution with probability 1/2 (a sign test at 1 %, over as many variables as there are).
#pragma once

#include <optional>
#include <span>

#include "frontend/compare/verdicts/race_runner.h"

namespace keel::compare {

inline constexpr int kTwins = 8;

struct StepVerdict {
  std::string backend;
  std::int64_t steps = 0;
  std::string variable;      // that was further off in most steps, or most often the furthest
  std::int64_t further = 0;  // steps in which it was
  std::int64_t needed = 0;   // so many that rounding reaches them with a probability below 1 %

  bool is_fault() const { return further >= needed; }
  // Whether there were enough steps for a fault to show.
  bool is_decided() const { return needed <= steps; }
  std::string text() const;
};

class StepTwins {
 public:
  StepTwins(Backend& reference, Backend& backend, ModelSubject& subject);

  // Takes the step from the state that the backend had before it, and compares with the state that
  // it has after it.
  void take(const TrainingState& before, const TrainingState& after, const SubjectStep& step);
  StepVerdict verdict() const;

 private:
  struct Count {
    std::int64_t further = 0;
    double largest = 0;  // ratio of distances
  };

  std::string backend_;
  RaceRunner reference_, twin_;
  std::map<std::string, Count> counts_;
  std::int64_t steps_ = 0;
};

// The least k for which at least k of n tosses of a coin are heads with a probability of at most
// `level`; n + 1 if there is none.
std::int64_t heads_that_tell(std::int64_t n, double level);

}  // namespace keel::compare
