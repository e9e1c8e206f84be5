// The host runs ahead of the device in training, on the emulator always. It still misses no result,
// and it saves nothing of a run that has diverged.
#include <doctest/doctest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "backends/backends.h"
#include "frontend/train/trainer.h"
#include "tests/support/poisoned.h"
#include "tests/support/small_run.h"
#include "tests/support/temp_dir.h"

namespace keel::cuda {
namespace {

namespace fs = std::filesystem;
using test::Settings;

train::Summary train_on_cuda(const fs::path& folder, const Settings& settings,
                             std::string_view model = "mnist_mlp") {
  const auto backend = make_backend("cuda");
  const train::Job job = test::small_job(settings, model);
  const train::RunOptions options{.folder = folder, .resume = false, .quiet = true, .facts = {}};
  return train::Trainer(*backend, job, options).run();
}

// Both log the same, but for rounding.
void check_as_on_cpu(const char* model, const Settings& settings) {
  CAPTURE(std::string(model));
  const test::TempDir temp;
  train_on_cuda(temp / "cuda", settings, model);
  const auto reference = make_backend("reference");
  train::Trainer(*reference, test::small_job(settings, model),
                 {.folder = temp / "cpu", .resume = false, .quiet = true, .facts = {}})
      .run();
  const auto got = io::read_metrics(temp / "cuda/metrics.jsonl"),
             expected = io::read_metrics(temp / "cpu/metrics.jsonl");
  REQUIRE(got.size() == expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    CAPTURE(i);
    for (const auto& [key, value] : expected[i].items()) {
      CAPTURE(key);
      if (key == "items_per_second" || key == "seconds") continue;
      if (value.is_number_float()) {
        CHECK(got[i].at(key).get<double>() == doctest::Approx(value.get<double>()).epsilon(1e-3));
      } else {
        CHECK(got[i].at(key) == value);
      }
    }
  }
}

TEST_CASE("cuda training: every step is logged, in order, with the numbers of a CPU" *
          doctest::test_suite("slow")) {
  check_as_on_cpu("mnist_mlp",
                  {"train.epochs=2", "train.log_every=3", "train.accumulate=2", "train.batch=16"});
  check_as_on_cpu("text_classifier", {"train.max_steps=6", "train.log_every=1", "train.batch=128",
                                      "data.train_rows=60", "model.norm=batchnorm"});
}

TEST_CASE("cuda training: divergence is found before anything is saved of it" *
          doctest::test_suite("slow")) {
  const Settings diverging{"train.optimizer=sgd", "train.lr=9e5", "train.weight_decay=1e37"};
  for (const char* last : {"train.epochs=9", "train.max_steps=3", "train.checkpoint_every=4"}) {
    CAPTURE(std::string(last));
    const test::TempDir temp;
    Settings settings = diverging;
    settings.push_back(last);
    try {
      train_on_cuda(temp.path(), settings);
      FAIL("it has not diverged");
    } catch (const Error& error) {
      const std::string message = error.what();
      CAPTURE(message);
      CHECK(error.kind() == ErrorKind::kDiverged);
      CHECK(message.starts_with("step 1: "));
      CHECK(message.find("first not finite: ") != std::string::npos);
      CHECK(message.find("does not show") == std::string::npos);
    }
    const auto files = fs::directory_iterator(temp / "checkpoints");
    CHECK(std::distance(begin(files), end(files)) == 1);
    CHECK(fs::exists(test::step_file(temp.path(), 0)));
  }
}

// The weights of now are not those of the step that is looked at; the numbers are the CPU's.
TEST_CASE("cuda training: updates that are not finite are left out as on a CPU" *
          doctest::test_suite("slow")) {
  for (const char* policy : {"skip", "rollback"}) {
    for (const char* gathered : {"1", "2"}) {
      CAPTURE(std::string(policy));
      const test::TempDir temp;
      const train::Job job = test::poisoned(
          {{3, 4, 10}}, {std::string("train.on_nonfinite=") + policy, "model.norm=batchnorm",
                         std::string("train.accumulate=") + gathered, "train.checkpoint_every=3"});
      std::vector<train::Summary> summaries;
      for (const char* name : {"cuda", "reference"}) {
        const auto backend = make_backend(name);
        summaries.push_back(
            train::Trainer(*backend, job,
                           {.folder = temp / name, .resume = false, .quiet = true, .facts = {}})
                .run());
      }
      CHECK(summaries[0].state.skipped == summaries[1].state.skipped);
      CHECK(summaries[0].state.skipped > 0);
      CHECK(summaries[0].state.consecutive_non_finite == summaries[1].state.consecutive_non_finite);
      CHECK(summaries[0].test.loss == doctest::Approx(summaries[1].test.loss).epsilon(1e-3));
    }
  }
}

}  // namespace
}  // namespace keel::cuda
