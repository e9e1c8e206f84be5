// Learning-rate schedules at their boundaries.
#include "frontend/optim/schedule.h"

#include <doctest/doctest.h>

#include <cmath>

#include "tests/support/checks.h"

namespace keel::optim {
namespace {

doctest::Approx near(double value) { return doctest::Approx(value).epsilon(1e-14); }

TEST_CASE("schedule: constant is 1") {
  for (std::int64_t t : {0, 1, 99}) CHECK(schedule_factor({}, t, 100) == 1);
}

TEST_CASE("schedule: every kind warms up in equal steps") {
  for (const Schedule kind :
       {Schedule::kConstant, Schedule::kInverseSqrt, Schedule::kCosine, Schedule::kStep}) {
    CAPTURE(choice_text(kind));
    const ScheduleOptions options{.kind = kind, .warmup = 4, .step_every = 1000};
    CHECK(schedule_factor(options, 0, 100) == 0.25);
    CHECK(schedule_factor(options, 2, 100) == 0.75);
    CHECK(schedule_factor(options, 3, 100) == 1);
    // The first update after it is nearly 1 still.
    CHECK(schedule_factor(options, 4, 100) <= 1);
    CHECK(schedule_factor(options, 4, 100) > 0.89);
  }
}

TEST_CASE("schedule: inverse_sqrt") {
  const ScheduleOptions plain{.kind = Schedule::kInverseSqrt},
      warm{.kind = Schedule::kInverseSqrt, .warmup = 100};
  CHECK(schedule_factor(plain, 0, 0) == 1);
  CHECK(schedule_factor(plain, 3, 0) == near(0.5));
  CHECK(schedule_factor(warm, 100, 0) == near(std::sqrt(100.0 / 101)));
  CHECK(schedule_factor(warm, 399, 0) == near(0.5));
}

TEST_CASE("schedule: a warm-up from a first rate, as fairseq counts") {
  const ScheduleOptions options{.kind = Schedule::kInverseSqrt, .warmup = 100, .warmup_from = 0.1};
  CHECK(schedule_factor(options, 0, 0) == near(0.1));
  CHECK(schedule_factor(options, 50, 0) == near(0.55));
  CHECK(schedule_factor(options, 99, 0) == near(0.991));
  CHECK(schedule_factor(options, 100, 0) == 1);
  CHECK(schedule_factor(options, 400, 0) == near(0.5));
  CHECK(schedule_factor({.kind = Schedule::kInverseSqrt, .warmup_from = 0.1}, 0, 0) == 1);
}

TEST_CASE("schedule: milestones are percents of the updates") {
  const ScheduleOptions options{.kind = Schedule::kMilestones, .milestones = {50, 75}};
  CHECK(schedule_factor(options, 0, 200) == 1);
  CHECK(schedule_factor(options, 99, 200) == 1);
  CHECK(schedule_factor(options, 100, 200) == near(0.1));
  CHECK(schedule_factor(options, 149, 200) == near(0.1));
  CHECK(schedule_factor(options, 150, 200) == near(0.01));
  CHECK(schedule_factor(options, 199, 200) == near(0.01));
  // Half of seven updates are three and a half.
  CHECK(schedule_factor(options, 3, 7) == 1);
  CHECK(schedule_factor(options, 4, 7) == near(0.1));
  for (const std::vector<std::int64_t>& wrong :
       std::vector<std::vector<std::int64_t>>{{}, {0}, {100}, {50, 50}, {60, 40}}) {
    test::check_refused([&] { validate({.kind = Schedule::kMilestones, .milestones = wrong}); },
                        "milestones: expected percents of the updates from 1 to 99, ascending");
  }
}

TEST_CASE("schedule: milestones with another schedule are refused") {
  test::check_refused([] { validate({.kind = Schedule::kCosine, .milestones = {50}}); },
                      "milestones: expected [] with the schedule cosine, got [50]");
  validate({.kind = Schedule::kCosine});
}

TEST_CASE("schedule: cosine falls from 1 to its minimum and stays") {
  const ScheduleOptions options{.kind = Schedule::kCosine, .warmup = 10, .min_factor = 0.2};
  CHECK(schedule_factor(options, 9, 110) == 1);
  CHECK(schedule_factor(options, 10, 110) == 1);
  CHECK(schedule_factor(options, 35, 110) == near(0.2 + 0.8 * (1 + std::sqrt(0.5)) / 2));
  CHECK(schedule_factor(options, 60, 110) == near(0.6));
  CHECK(schedule_factor(options, 109, 110) == doctest::Approx(0.2).epsilon(1e-2));
  CHECK(schedule_factor(options, 110, 110) == near(0.2));
  CHECK(schedule_factor(options, 500, 110) == near(0.2));
  // A run that is all warm-up divides by nothing.
  CHECK(schedule_factor({.kind = Schedule::kCosine, .warmup = 5}, 5, 5) == 1);
}

TEST_CASE("schedule: cosine_absolute is on its wave from the first update on") {
  const ScheduleOptions options{
      .kind = Schedule::kCosineAbsolute, .warmup = 25, .min_factor = 0.2};
  CHECK(schedule_factor(options, 24, 100) == 1);
  CHECK(schedule_factor(options, 25, 100) == near(0.2 + 0.8 * (1 + std::sqrt(0.5)) / 2));
  CHECK(schedule_factor(options, 50, 100) == near(0.6));
  CHECK(schedule_factor(options, 100, 100) == near(0.2));
  CHECK(schedule_factor(options, 300, 100) == near(0.2));
}

TEST_CASE("schedule: step falls by its factor again and again") {
  const ScheduleOptions options{.kind = Schedule::kStep, .step_every = 10, .step_factor = 0.5};
  CHECK(schedule_factor(options, 0, 0) == 1);
  CHECK(schedule_factor(options, 9, 0) == 1);
  CHECK(schedule_factor(options, 10, 0) == 0.5);
  CHECK(schedule_factor(options, 19, 0) == 0.5);
  CHECK(schedule_factor(options, 20, 0) == 0.25);
}

TEST_CASE("schedule: steps are counted from the first update on, those of a warm-up included") {
  const ScheduleOptions options{
      .kind = Schedule::kStep, .warmup = 15, .step_every = 10, .step_factor = 0.5};
  CHECK(schedule_factor(options, 0, 0) == near(1.0 / 15));
  CHECK(schedule_factor(options, 12, 0) == near(13.0 / 15));
  CHECK(schedule_factor(options, 14, 0) == 1);
  CHECK(schedule_factor(options, 15, 0) == 0.5);
  CHECK(schedule_factor(options, 19, 0) == 0.5);
  CHECK(schedule_factor(options, 20, 0) == 0.25);
  CHECK(schedule_factor(options, 30, 0) == 0.125);
}

TEST_CASE("schedule: refusals") {
  const auto refused = [](const ScheduleOptions& options, std::string_view key,
                          std::string_view part) {
    test::check_refused([&] { validate(options); }, key, part);
  };
  refused({.warmup_from = 2}, "warmup_init_lr:", "expected 0 to lr, got 2 times lr");
  refused({.warmup = -1}, "warmup:", "expected >= 0, got -1");
  refused({.kind = Schedule::kStep}, "step_every:", "expected >= 1");
  refused({.step_factor = 0}, "step_factor:", "expected > 0, got 0");
  refused({.step_factor = std::nan("")}, "step_factor:", "nan");
  refused({.min_factor = 1.5}, "min_factor:", "expected in [0, 1], got 1.5");
  for (const Schedule kind : {Schedule::kConstant, Schedule::kInverseSqrt, Schedule::kCosine})
    validate({.kind = kind});
  validate({.kind = Schedule::kStep, .step_every = 1});
}

}  // namespace
}  // namespace keel::optim
