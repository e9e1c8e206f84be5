// The progress that a person sees of a run: durations, and silence where it is asked for.
#include "frontend/train/progress.h"

#include <doctest/doctest.h>

#include "frontend/train/period.h"
#include "tests/support/captured_err.h"

namespace keel::train {
namespace {

using test::captured_err;

constexpr Progress::Point kPoint{
    .step = 3,
    .total = 40,
    .epoch = 2,
    .loss = 0.5,
    .items_per_second = 1234.4,
    .item_unit = "tokens",
    .spent = {.updating = 6, .evaluating = 10, .updates = 3, .evaluations = 4},
    .to_do = {.updates = 30, .evaluations = 6}};

TEST_CASE("progress: durations") {
  CHECK(duration_text(0) == "0 s");
  CHECK(duration_text(0.04) == "0 s");
  CHECK(duration_text(0.26) == "0.3 s");
  CHECK(duration_text(0.96) == "1 s");
  CHECK(duration_text(9.6) == "10 s");
  CHECK(duration_text(59.4) == "59 s");
  CHECK(duration_text(59.6) == "1:00");
  CHECK(duration_text(245) == "4:05");
  CHECK(duration_text(3599) == "59:59");
  CHECK(duration_text(3723) == "1:02:03");
  CHECK(duration_text(100 * 3600) == "100:00:00");
}

TEST_CASE("progress: plain lines, seldom, where there is no terminal") {
  const std::string text = captured_err([] {
    Progress progress(false);
    for (int i = 0; i < 1000; ++i) progress.update(kPoint);
    progress.line("epoch 2: done");
  });
  CHECK(text == "epoch 2 step 3/40 loss 0.5000 1234 tokens/s, 1:15 left\nepoch 2: done\n");
}

TEST_CASE("progress: an evaluation says how far it has come, a search how many batches it had") {
  const auto said = [](std::int64_t done, std::int64_t of) {
    return captured_err([&] { Progress(false).evaluation("epoch 2, step 9", done, of); });
  };
  CHECK(said(3, 12) == "epoch 2, step 9: evaluating, batch 3 of 12\n");
  CHECK(said(3, 0) == "epoch 2, step 9: searching, batch 3\n");
}

TEST_CASE("progress: the time left is that of updates and of evaluations") {
  CHECK(seconds_left(kPoint.spent, kPoint.to_do) == 30 * 2 + 6 * 2.5);
  CHECK(seconds_left({}, {.updates = 30, .evaluations = 6}) == 0);
  const Spent none_measured{.updating = 6, .evaluating = 0, .updates = 3, .evaluations = 0};
  CHECK(left_text(none_measured, {.updates = 30, .evaluations = 6}) ==
        "1:00 left, not counting evaluations");
  CHECK(left_text(none_measured, {.updates = 30, .evaluations = 0}) == "1:00 left");
}

TEST_CASE("progress: how often a period falls on what is still to come") {
  const Period updates{.n = 4, .unit = PeriodUnit::kUpdates}, epochs{.n = 2};
  CHECK(updates.times(9, 19) == 4);
  CHECK(updates.times(9, 20) == 5);
  CHECK(epochs.times(9, 20) == 4);
  CHECK(Period{}.times(9, 20) == 0);
}

TEST_CASE("progress: nothing when quiet but warnings") {
  const std::string text = captured_err([] {
    Progress progress(true);
    progress.update(kPoint);
    progress.line("epoch 2: done");
    progress.warning("one checkpoint is damaged");
  });
  CHECK(text == "warning: one checkpoint is damaged\n");
}

}  // namespace
}  // namespace keel::train
