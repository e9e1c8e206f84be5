// Curves that the study `convergence` reads from the logs of runs.
#include "studies/learning_curves.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "backends/backends.h"
#include "frontend/report/run.h"
#include "tests/studies/short_run.h"
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

TEST_CASE("study: convergence holds layernorm's best result against that without a norm") {
  const auto backend = make_backend(default_backend());
  const test::TempDir temp;
  Options options{*backend};
  for (const char* norm : {"layernorm", "none"}) {
    for (const int seed : {1, 2, 3}) {
      const std::filesystem::path folder = temp / fmt::format("{}{}", norm, seed);
      test::train_in(
          folder,
          test::small_job({fmt::format("model.norm={}", norm), fmt::format("train.seed={}", seed),
                           "train.max_steps=2", "train.eval_every=1u", "train.log_every=1"},
                          "order_embeddings"));
      options.runs.push_back(test::step_file(folder, 2).string());
    }
  }
  const Result result = find_study("convergence").run(options);
  const auto best = std::ranges::find(
      result.checks, "order_embeddings: by how much layernorm's best result is better than none's",
      &Check::claim);
  REQUIRE(best != result.checks.end());
  CHECK(best->judged);
}

TEST_CASE("learning curves: the data are those of runs that have ended, on real data") {
  const auto backend = make_backend(default_backend());
  const test::TempDir temp;
  const auto run = [&](const char* name, const test::Settings& more) {
    test::Settings settings{"train.max_steps=2", "train.eval_every=1u", "train.log_every=1"};
    settings.insert(settings.end(), more.begin(), more.end());
    test::train_in(temp / name, test::small_job(settings));
    return test::step_file(temp / name, 2).string();
  };
  const auto data_of = [&](const std::vector<std::string>& runs) {
    Options options{*backend};
    options.runs = runs;
    std::vector<NormCurves> all;
    return curves_of_runs(options, all).data;
  };
  const std::string one = run("one", {"train.seed=1"}), two = run("two", {"model.norm=none"}),
                    synthetic = run("synthetic", {"data.source=builtin", "data.train_rows=64"});
  CHECK(data_of({one}).find(test::small_digits().string()) != std::string::npos);
  CHECK(data_of({one, two}) == data_of({one}));
  CHECK(data_of({synthetic}).empty());
  std::filesystem::remove(temp / "two/result.json");
  CHECK(data_of({one, two}).empty());
}

// RT is split by a seed, which is part of what a run says of its rows.
TEST_CASE("learning curves: runs of text_classifier name their task, however its rows are split") {
  const auto backend = make_backend(default_backend());
  const test::TempDir temp;
  std::string negative, positive;
  for (int i = 0; i < 40; ++i) {
    negative += fmt::format("bad film number {}\n", i);
    positive += fmt::format("good film number {}\n", i);
  }
  test::write_bytes(temp / "rt-polarity.neg", negative);
  test::write_bytes(temp / "rt-polarity.pos", positive);
  Options options{*backend};
  for (const int seed : {1, 2}) {
    const std::filesystem::path folder = temp / fmt::format("run{}", seed);
    test::train_in(folder, test::small_job({"data.source=" + temp.path().string(), "model.task=rt",
                                            fmt::format("data.seed={}", seed),
                                            fmt::format("train.seed={}", seed), "train.max_steps=2",
                                            "train.eval_every=1u", "train.log_every=1"},
                                           "text_classifier"));
    options.runs.push_back(test::step_file(folder, 2).string());
  }
  std::vector<NormCurves> all;
  CHECK(curves_of_runs(options, all).data == "rt");
}

// Without label smoothing both losses are the same: of all three batches of each update.
TEST_CASE("study: convergence adds up the losses of an update's batches") {
  const auto backend = make_backend("reference");
  Options options{*backend, 1, 1, 2};
  options.task = "mnist_mlp";
  options.data = test::small_digits().string();
  options.norms = {"none", "batchnorm"};
  options.settings = {{"model.hidden", "8"},
                      {"data.train_rows", "0"},
                      {"train.batch", "8"},
                      {"train.accumulate", "3"}};
  const Result result = find_study("convergence").run(options);
  const auto& rows = result.tables.at(0).rows;
  REQUIRE(rows.size() == 3);
  for (std::size_t i = 1; i < rows.size(); ++i) CHECK(rows[i][1] == rows[i][2]);
}

// A log has only the loss of smoothed labels; a training has the other, too.
TEST_CASE("study: convergence says that a run with smoothed labels has no unsmoothed loss") {
  const auto backend = make_backend(default_backend());
  const test::TempDir temp;
  const test::Settings settings{"model.label_smoothing=0.1", "train.max_steps=2",
                                "train.eval_every=1u", "train.log_every=1"};
  test::train_in(temp / "run", test::small_job(settings, "translation"));
  Options options{*backend};
  options.runs = {test::step_file(temp / "run", 2).string()};
  const Result of_run = find_study("convergence").run(options);
  CHECK(of_run.tables.at(0).rows.at(1)[2] == "-");
  CHECK(of_run.tables.at(1).title ==
        "every curve; of trainings the loss is that of smoothed labels");
  CHECK(std::stod(of_run.tables[1].rows.at(1)[3]) > 0);

  Options here = on_small_pairs(*backend);
  here.norms = {"layernorm"};
  const Result trained = find_study("convergence").run(here);
  const auto& row = trained.tables.at(0).rows.at(1);
  CHECK(std::stod(row[2]) < std::stod(row[1]));  // the recipe smooths labels
}

}  // namespace
}  // namespace keel::study
