// Curves that the study `convergence` reads from the logs of runs.
#include "studies/learning_curves.h"

#include <doctest/doctest.h>

#include "backends/backends.h"
#include "frontend/report/run.h"
#include "tests/support/checks.h"
#include "tests/support/small_run.h"
#include "tests/support/temp_dir.h"

namespace keel::study {
namespace {

TEST_CASE("study: convergence reads the curves of runs, whose seeds must be the same") {
  const auto backend = make_backend(default_backend());
  const test::TempDir temp;
  Options options{*backend};
  const auto train = [&](const char* norm, int seed) {
    const std::filesystem::path folder = temp / fmt::format("{}{}", norm, seed);
    test::train_in(folder, test::small_job({fmt::format("model.norm={}", norm),
                                            fmt::format("train.seed={}", seed), "train.max_steps=6",
                                            "train.eval_every=2u", "train.log_every=1"}));
    return test::step_file(folder, 6).string();
  };
  for (const char* norm : {"none", "layernorm"}) {
    for (const int seed : {2, 1, 3}) options.runs.push_back(train(norm, seed));
  }
  const Result result = find_study("convergence").run(options);
  const auto& points = result.tables.at(1).rows;
  REQUIRE(points.size() >= 1 + 2 * 3 * 3 * 2);
  CHECK(points[1][0] == "2");  // the first validation
  CHECK(points[1][6] == "1");  // of the first seed
  CHECK(points[2][2] == "valid");
  REQUIRE(result.checks.size() == 1);
  CHECK(result.checks[0].judged);
  CHECK(result.checks[0].claim ==
        "mnist_mlp: updates of none to its best result / layernorm's, less 1");
  // The training loss of a point is the mean of the two updates before it.
  const report::Run run = report::read_run(temp / "none1");
  const report::Curve* steps = report::find_curve(run, "step", "loss");
  REQUIRE(steps != nullptr);
  CHECK(std::stod(points[1][3]) ==
        doctest::Approx((steps->value[0] + steps->value[1]) / 2).epsilon(1e-4));
  options.runs.pop_back();
  CHECK_THROWS_AS(find_study("convergence").run(options), Error);
  options.runs.push_back(options.runs.front());
  CHECK_THROWS_AS(find_study("convergence").run(options), Error);
}

}  // namespace
}  // namespace keel::study
