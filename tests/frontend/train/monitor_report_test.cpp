// Quantities that layers monitor: the largest of each quantity, one warning, and in which steps it
// is there.
#include "frontend/train/monitor_report.h"

#include <doctest/doctest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "backends/backends.h"
#include "frontend/train/step_runner.h"
#include "tests/support/small_run.h"
#include "tests/support/temp_dir.h"

namespace keel::train {
namespace {

using test::small_job;

TEST_CASE("monitor report: the largest of each quantity, and one warning naming its layer") {
  std::vector<std::string> warnings;
  MonitorReport report({{.name = "gain", .value = {}, .limit = 2, .beyond = "loud", .layer = "a"},
                        {.name = "size", .value = {}, .layer = "a"},
                        {.name = "gain", .value = {}, .limit = 2, .beyond = "loud", .layer = "b"}},
                       [&](const std::string& text) { warnings.push_back(text); });
  using Largest = std::map<std::string, double>;
  report.take(1, {{0.5, 1e9, 2.0}});
  CHECK(report.largest() == Largest{{"gain", 2}, {"size", 1e9}});
  CHECK(warnings.empty());
  report.take(2, {});
  CHECK(report.largest().empty());
  report.take(3, {{2.25, 0, 2.5}});
  report.take(4, {{7, 0, 2.5}});
  CHECK(report.largest() == Largest{{"gain", 7}, {"size", 0}});
  CHECK(warnings == std::vector<std::string>{"step 3: b: gain is 2.5, above 2: loud"});
}

// The lines of a run's steps.
std::vector<nlohmann::ordered_json> steps_of(test::Settings settings) {
  const test::TempDir temp;
  settings.insert(settings.end(), {"train.max_steps=3", "train.log_every=1"});
  test::train_in(temp.path(), small_job(settings));
  auto lines = io::read_metrics(temp / "metrics.jsonl");
  std::erase_if(lines, [](const auto& line) { return !line.contains("grad_norm"); });
  REQUIRE(lines.size() == 3);
  return lines;
}

TEST_CASE("monitor report: PowerNorm's contraction and nu in the log, and nothing without it") {
  const auto slow = steps_of({"model.norm=powernorm{alpha_b=0.9}"}),
             fast = steps_of({"model.norm=powernorm{alpha_b=0.8}"});
  const auto number = [](const auto& line, const char* name) {
    return line.at(name).template get<double>();
  };
  for (const auto& line : slow) {
    CHECK(std::isfinite(number(line, "powernorm.contraction")));
    CHECK(number(line, "powernorm.contraction") > 0);
  }
  // (1 - alpha_b) Gamma, of the same Gamma; nu starts at 0.
  CHECK(number(fast[0], "powernorm.contraction") ==
        doctest::Approx(2 * number(slow[0], "powernorm.contraction")).epsilon(1e-6));
  CHECK(number(slow[0], "powernorm.nu_max") == 0);
  CHECK(number(slow[1], "powernorm.nu_max") > 0);
  CHECK(steps_of({"model.norm=powernorm", "train.accumulate=2"})[0].contains("powernorm.nu_max"));
  for (const auto& line : steps_of({"model.norm=pn_v"})) CHECK(line.size() == 7);
}

TEST_CASE("monitor report: values are there in the first 64 steps and in those that are logged") {
  const Job job = small_job({"model.norm=powernorm", "model.layers=1", "train.log_every=10"});
  const task::Splits& data = job.splits();
  const auto rows = data.stream(task::Split::kTrain, {.batch = 32, .shuffle = 1});
  const auto backend = make_backend(default_backend());
  Variables variables(*backend, 1);
  StepRunner steps(*backend, variables, job, *rows);
  for (std::int64_t step = 0; step < 75; ++step) {
    CAPTURE(step);
    steps.start({step, 0, step % steps.steps(0)});
    const StepResult* result = steps.next(true);
    REQUIRE(result != nullptr);
    CHECK(result->monitored.size() == (step < 64 || step == 69 ? 4 : 0));
  }
}

}  // namespace
}  // namespace keel::train
