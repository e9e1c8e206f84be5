// Learning-rate schedules: the factor of the base learning rate at update t = 0, 1, ....
//
// During the first w = warmup updates the factor is (t + 1) / w or, if the warm-up begins with a
// factor b = warmup_from above 0, b + (1 - b) t / w, as in fairseq. After that:
//   constant      1
//   inverse_sqrt  sqrt(w / (t + 1)), or sqrt(w / t) after a warm-up from b; w = 1 when there is no
//                 warm-up
//   cosine        min + (1 - min) (1 + cos(pi (t - w) / (total - w))) / 2,  min = min_factor
//   cosine_absolute  the same with t / total in place of (t - w) / (total - w): after a warm-up it
//                 begins below 1, as in Transformer-XL's program
//   step          step_factor ^ floor(t / step_every)
//   milestones    step_factor ^ (number of milestones m with 100 t >= m total); they are percents
//                 of the updates
#pragma once

#include <cstdint>
#include <vector>

#include "src/core/choice.h"

namespace keel::optim {

enum class Schedule {
  kConstant,
  kInverseSqrt,
  kCosine,
  kCosineAbsolute,
  kStep,
  kMilestones
};
constexpr auto choice_words(Schedule) {
  return std::to_array<std::string_view>(
      {"constant", "inverse_sqrt", "cosine", "cosine_absolute", "step", "milestones"});
}

struct ScheduleOptions {
  Schedule kind = Schedule::kConstant;
  std::int64_t warmup = 0;      // updates
  std::int64_t step_every = 0;  // updates
  double step_factor = 0.1;
  double min_factor = 0;
  double warmup_from = 0;
  std::vector<std::int64_t> milestones = {};  // percents, ascending; none with other schedules
};

// Throws Error{kUsage} naming the option whose value is out of range.
void validate(const ScheduleOptions& options);

// The factor at update t of `total`.
double schedule_factor(const ScheduleOptions& options, std::int64_t t, std::int64_t total);

}  // namespace keel::optim
