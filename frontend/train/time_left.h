// An estimate of how long a run still takes, from its speed so far.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace keel::train {

double seconds_since(std::chrono::steady_clock::time_point start);

// The work that this process has done since it began, and its time in seconds.
struct Spent {
  double updating = 0, evaluating = 0;
  std::int64_t updates = 0, evaluations = 0;
};

// The work still to come, if nothing stops the run early.
struct ToDo {
  std::int64_t updates = 0, evaluations = 0;
};

// to_do.updates * updating / updates + to_do.evaluations * evaluating / evaluations, in seconds.
// The second term is left out while no evaluation was measured; 0 without updates.
double seconds_left(const Spent& spent, const ToDo& to_do);

// "4:05 left", followed by ", not counting evaluations" where evaluations are to come and none was
// measured yet.
std::string left_text(const Spent& spent, const ToDo& to_do);

}  // namespace keel::train
