// These tests count how often the host waits for the device. On the emulator the host is always
// ahead.
#include <doctest/doctest.h>

#include "backends/backends.h"
#include "backends/cuda/emulator/simt.h"
#include "frontend/train/trainer.h"
#include "tests/support/small_run.h"
#include "tests/support/temp_dir.h"

namespace keel::cuda {
namespace {

void train_and_wait(const std::filesystem::path& folder, const test::Settings& settings) {
  const auto backend = make_backend("cuda");
  const train::Job job = test::small_job(settings);
  const train::RunOptions options{.folder = folder, .resume = false, .quiet = true, .facts = {}};
  train::Trainer(*backend, job, options).run();
}

// How often the host waits in a run of so many steps of one epoch, its end included.
std::int64_t waits_of(std::int64_t steps, std::int64_t log_every) {
  const test::TempDir temp;
  const std::int64_t before = simt::counts.waits;
  train_and_wait(temp.path(),
                 {"train.batch=2", "model.hidden=4", fmt::format("train.max_steps={}", steps),
                  fmt::format("train.log_every={}", log_every)});
  return simt::counts.waits - before;
}

TEST_CASE("cuda training: the host waits once in N steps" * doctest::test_suite("slow")) {
  for (const std::int64_t n : {1, 10, 50}) {
    CAPTURE(n);
    CHECK(waits_of(110, n) - waits_of(10, n) <= 100 / n);
  }
}

TEST_CASE("cuda training: evaluation waits once") {
  const test::TempDir temp;
  const auto backend = make_backend("cuda");
  const train::Job job = test::small_job();
  Variables variables(*backend, 1);
  train::Evaluator evaluator(*backend, variables, job);
  const task::Splits& data = job.splits();
  const auto rows = data.stream(task::Split::kTrain, {.batch = 256, .shuffle = {}});
  const std::int64_t before = simt::counts.waits;
  CHECK(evaluator.run(*rows).rows == 275);  // in two batches
  CHECK(simt::counts.waits - before == 1);
}

}  // namespace
}  // namespace keel::cuda
