#include "frontend/optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>

#include "src/core/error.h"

namespace keel::optim {
namespace {

// From 1 to min_factor along half a wave while t goes from 0 to `span`.
double cosine(const ScheduleOptions& options, std::int64_t t, std::int64_t span) {
  const double progress = std::clamp(double(t) / double(std::max<std::int64_t>(span, 1)), 0.0, 1.0);
  const double wave = (1 + std::cos(std::numbers::pi * progress)) / 2;
  return options.min_factor + (1 - options.min_factor) * wave;
}

double decay(const ScheduleOptions& options, std::int64_t t, std::int64_t total) {
  switch (options.kind) {
    case Schedule::kConstant:
      return 1;
    case Schedule::kInverseSqrt: {
      const std::int64_t counted = options.warmup_from > 0 ? std::max<std::int64_t>(t, 1) : t + 1;
      return std::sqrt(double(std::max<std::int64_t>(options.warmup, 1)) / double(counted));
    }
    case Schedule::kCosine:
      return cosine(options, t - options.warmup, total - options.warmup);
    case Schedule::kCosineAbsolute:
      return cosine(options, t, total);
    case Schedule::kStep:
      return std::pow(options.step_factor, double(t / options.step_every));
    case Schedule::kMilestones:
      return std::pow(options.step_factor,
                      double(std::ranges::count_if(options.milestones, [&](std::int64_t milestone) {
                        return 100 * t >= milestone * total;
                      })));
  }
  return 1;
}

void expect_milestones(const ScheduleOptions& options) {
  const std::vector<std::int64_t>& m = options.milestones;
  const bool are_percents = !m.empty() && m.front() >= 1 && m.back() <= 99;
  const bool ascend = std::ranges::adjacent_find(m, std::ranges::greater_equal()) == m.end();
  check(are_percents && ascend, ErrorKind::kUsage,
        "milestones: expected percents of the updates from 1 to 99, ascending, with the schedule "
        "milestones, got [{}]",
        fmt::join(m, ","));
}

}  // namespace

void validate(const ScheduleOptions& options) {
  if (options.kind == Schedule::kMilestones) expect_milestones(options);
  check(options.kind == Schedule::kMilestones || options.milestones.empty(), ErrorKind::kUsage,
        "milestones: expected [] with the schedule {}, got [{}]", choice_text(options.kind),
        fmt::join(options.milestones, ","));
  check(options.warmup >= 0, ErrorKind::kUsage, "warmup: expected >= 0, got {}", options.warmup);
  check(options.kind != Schedule::kStep || options.step_every >= 1, ErrorKind::kUsage,
        "step_every: expected >= 1 with the step schedule, got {}", options.step_every);
  check(options.step_factor > 0, ErrorKind::kUsage, "step_factor: expected > 0, got {}",
        options.step_factor);
  check(options.min_factor >= 0 && options.min_factor <= 1, ErrorKind::kUsage,
        "min_factor: expected in [0, 1], got {}", options.min_factor);
  check(options.warmup_from >= 0 && options.warmup_from <= 1, ErrorKind::kUsage,
        "warmup_init_lr: expected 0 to lr, got {} times lr", options.warmup_from);
}

double schedule_factor(const ScheduleOptions& options, std::int64_t t, std::int64_t total) {
  const double from = options.warmup_from, w = double(options.warmup);
  if (t < options.warmup && from > 0) return from + (1 - from) * double(t) / w;
  if (t < options.warmup) return double(t + 1) / double(options.warmup);
  return decay(options, t, total);
}

}  // namespace keel::optim
