#include "frontend/optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "src/core/error.h"
#include "src/core/nearest.h"

namespace keel::optim {
namespace {

double decay(const ScheduleOptions& options, std::int64_t t, std::int64_t total) {
  if (options.name == "inverse_sqrt") {
    return std::sqrt(double(std::max<std::int64_t>(options.warmup, 1)) / double(t + 1));
  }
  if (options.name == "cosine") {
    const double span = double(std::max<std::int64_t>(total - options.warmup, 1));
    const double progress = std::clamp(double(t - options.warmup) / span, 0.0, 1.0);
    const double wave = (1 + std::cos(std::numbers::pi * progress)) / 2;
    return options.min_factor + (1 - options.min_factor) * wave;
  }
  if (options.name == "step") {
    return std::pow(options.step_factor, double(t / options.step_every));
  }
  return 1;
}

}  // namespace

void validate(const ScheduleOptions& options) {
  const std::vector<std::string> names{"constant", "inverse_sqrt", "cosine", "step"};
  check(std::ranges::find(names, options.name) != names.end(), ErrorKind::kUsage,
        "train.schedule: {}", unknown_name(options.name, names));
  check(options.warmup >= 0, ErrorKind::kUsage, "train.warmup: expected >= 0, got {}",
        options.warmup);
  check(options.name != "step" || options.step_every >= 1, ErrorKind::kUsage,
        "train.step_every: expected >= 1 with the step schedule, got {}", options.step_every);
  check(options.step_factor > 0, ErrorKind::kUsage, "train.step_factor: expected > 0, got {}",
        options.step_factor);
  check(options.min_factor >= 0 && options.min_factor <= 1, ErrorKind::kUsage,
        "train.min_factor: expected in [0, 1], got {}", options.min_factor);
}

double schedule_factor(const ScheduleOptions& options, std::int64_t t, std::int64_t total) {
  if (t < options.warmup) return double(t + 1) / double(options.warmup);
  return decay(options, t, total);
}

}  // namespace keel::optim
