#include "frontend/train/time_left.h"

#include "frontend/train/progress.h"

namespace keel::train {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double seconds_left(const Spent& spent, const ToDo& to_do) {
  const auto of = [](std::int64_t count, double seconds, std::int64_t measured) {
    return measured > 0 ? double(count) * seconds / double(measured) : 0;
  };
  return of(to_do.updates, spent.updating, spent.updates) +
         of(to_do.evaluations, spent.evaluating, spent.evaluations);
}

std::string left_text(const Spent& spent, const ToDo& to_do) {
  const bool unknown = to_do.evaluations > 0 && spent.evaluations == 0;
  return duration_text(seconds_left(spent, to_do)) + " left" +
         (unknown ? ", not counting evaluations" : "");
}

}  // namespace keel::train
