// The studies that train in float32, cut to three steps: what they find, and what they count.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>

#include "backends/backends.h"
#include "frontend/report/figures.h"
#include "studies/memory_training.h"
#include "studies/zoo_job.h"
#include "tests/studies/short_run.h"
#include "tests/support/checks.h"
#include "tests/support/faulty_backend.h"
#include "tests/support/small_run.h"
#include "tests/support/temp_dir.h"

namespace keel::study {
namespace {

const Check& check_of(const Result& result, const std::string& claim) {
  const auto found = std::ranges::find(result.checks, claim, &Check::claim);
  REQUIRE(found != result.checks.end());
  return *found;
}

TEST_CASE("study: theorem4-training holds, and finds a mistake in nu or in the gradient of gain" *
          doctest::test_suite("slow")) {
  const auto backend = make_backend(default_backend());
  const Result result = run("theorem4-training", *backend);
  CHECK(result.holds());
  CHECK(result.tables.at(0).rows.size() == 1 + 4 * 5);
  for (int output : {1, 3}) {
    test::FaultyBackend faulty({"power_norm_backward", output});
    CHECK_FALSE(run("theorem4-training", faulty).holds());
    CHECK(faulty.nodes() > 0);
  }
}

TEST_CASE("study: figure7 counts every feature of every norm once") {
  const auto backend = make_backend(default_backend());
  const Result result = run("figure7", *backend);
  REQUIRE(result.tables.size() == 4);
  const std::vector<std::vector<std::string>>& histogram = result.tables[0].rows;
  CHECK(histogram.size() == 1 + 5);
  for (std::size_t row = 1; row < histogram.size(); ++row) {
    int features = 0;
    for (std::size_t bin = 1; bin <= 6; ++bin) features += std::stoi(histogram[row][bin]);
    CHECK(features == 64);
  }
  CHECK(result.tables[1].rows.size() == 1 + 5 * 64);
  CHECK_FALSE(check_of(result, "pn_v + ls: share of features with |gain| <= psi").judged);
}

// A drawn histogram counts the ratios of its site's features in the bins around series.x. The table
// has the ratios to four digits, so one beside an edge may be on either side.
void check_bins(const io::PlotSeries& series, const Table& features) {
  const double half = series.x[0];
  for (std::size_t b = 0; b < series.x.size(); ++b) {
    CAPTURE(b);
    int surely = 0, perhaps = 0;
    for (const std::vector<std::string>& row : features.rows) {
      if (row[1] != series.name) continue;
      const bool is_last = b + 1 == series.x.size();
      const double off = std::stod(row[5]) - series.x[b],
                   size = is_last && off > 0 ? 0 : std::abs(off);
      surely += size < half - 1e-4;
      perhaps += size <= half + 1e-4;
    }
    CHECK(surely <= series.y[b]);
    CHECK(series.y[b] <= perhaps);
  }
}

TEST_CASE("study: figure7 of a task looks at the norms of its encoder, and needs psi") {
  const auto backend = make_backend(default_backend());
  Options options = on_small_pairs(*backend);
  const Result result = run_small("figure7", options);
  REQUIRE(result.tables.size() == 2);
  CHECK(result.tables[0].rows.size() == 1 + 3);  // 2 of the layer, and the final one
  CHECK(result.tables[1].rows.size() == 1 + 3 * 8);
  for (std::size_t i = 1; i < result.tables[1].rows.size(); ++i) {
    const std::vector<std::string>& row = result.tables[1].rows[i];
    CHECK(std::stod(row[5]) ==
          doctest::Approx(std::abs(std::stod(row[3])) / std::stod(row[4])).epsilon(1e-3));
  }
  REQUIRE(result.drawings.size() == 1);
  REQUIRE(result.drawings[0].plot.series.size() == 3);
  for (const io::PlotSeries& series : result.drawings[0].plot.series) {
    CHECK(std::reduce(series.y.begin(), series.y.end()) == 8);
    check_bins(series, result.tables[1]);
  }
  options.norms = {"layernorm"};
  test::check_refused([&] { run_small("figure7", options); },
                      "[figure7] --norm: expected batchnorm, pn_v or powernorm, got layernorm");
  Options without = options;
  without.task.clear();
  test::check_refused([&] { run_small("figure7", without); }, "[figure7] --task: expected one");
}

// An update that changes no weight, of all rows in one batch, and a running statistic that keeps
// nothing: then the state has psi_B^2, or sigma_B^2.
TEST_CASE("study: figure7's psi is that of the batch, whatever the norm") {
  const auto backend = make_backend(default_backend());
  const std::tuple<const char*, const char*> norms[] = {{"batchnorm{keep=0}", "running_var"},
                                                        {"pn_v{keep=0}", "psi2"},
                                                        {"powernorm{alpha_f=0}", "psi2"}};
  for (const auto& [norm, state] : norms) {
    CAPTURE(std::string(norm));
    Options options = on_small_digits(*backend);
    options.steps = 1;
    options.norms = {norm};
    options.settings = {{"model.batchnorm_options", ""},
                        {"model.hidden", "8"},
                        {"train.batch", "275"},
                        {"train.lr", "1e-30"}};
    const Result result = run_small("figure7", options);
    const train::Job job = zoo_job(options, 0, {options.task, norm, 1});
    Training training(*backend, job);
    training.run();
    CHECK(result.tables.at(1).rows.at(1).at(1) == "fc1/norm");
    for (std::size_t i = 1; i < result.tables.at(1).rows.size(); ++i) {
      const std::vector<std::string>& row = result.tables[1].rows[i];
      // PowerNorm's output hangs on the state, and so does the input of the second norm.
      if (row[1] != "fc1/norm") continue;
      const Tensor found = training.variables().read(row[1] + "/" + state, true);
      const double psi = std::sqrt(found.at(std::stoi(row[2])) + 1e-5);
      CHECK(std::abs(std::stod(row[4]) - psi) <= 1e-4);  // four digits after the point
    }
    CHECK_FALSE(result.checks.at(0).judged);
  }
}

TEST_CASE("study: figure7 of three runs judges PN-V of a translation, and shows other norms") {
  const auto backend = make_backend(default_backend());
  const test::TempDir temp;
  Options options{*backend};
  options.runs = small_translations(temp.path(), {"pn_v", "batchnorm"}, 3);
  const Result result = run_small("figure7", options);
  CHECK(result.drawings.size() == 6);
  REQUIRE(result.checks.size() == 2);
  CHECK(check_of(result,
                 "translation, pn_v: share of features with |gain| <= psi, the least of the seeds")
            .judged);
  CHECK_FALSE(
      check_of(result, "translation, batchnorm: share of features with |gain| <= psi").judged);
  options.runs.push_back(options.runs.front());
  test::check_refused([&] { run_small("figure7", options); },
                      "[figure7] --run: expected runs that differ in task, norm, data or seed");
}

TEST_CASE("study: batch-size gathers one update from eight batches, four, two and one") {
  const auto backend = make_backend(default_backend());
  Options options = on_small_digits(*backend);
  options.norms = {"layernorm", "batchnorm"};
  const Result result = run_small("batch-size", options);
  REQUIRE(result.tables.at(0).rows.size() == 1 + 2 * 4);
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(result.tables[0].rows[1 + i][1] == fmt::format("{}", 4 << i));
  }
  CHECK(result.drawings.at(0).plot.series.size() == 2);
  for (const Check& c : result.checks) CHECK_FALSE(c.judged);
  options.settings.push_back({"train.batch", "4"});
  test::check_refused([&] { run_small("batch-size", options); },
                      "[batch-size] train.batch: expected at least 8, got 4");
}

// Runs of digits, in updates of 32 rows.
std::string digits_run(const std::filesystem::path& folder, const std::string& norm, int batch,
                       int seed, const std::string& statistics = "local") {
  test::train_in(folder, test::small_job({"model.norm=" + norm, fmt::format("train.seed={}", seed),
                                          fmt::format("train.batch={}", batch),
                                          fmt::format("train.accumulate={}", 32 / batch),
                                          "train.statistics=" + statistics, "train.max_steps=2",
                                          "train.eval_every=1u"}));
  return test::step_file(folder, 2);
}

TEST_CASE("study: batch-size of runs has what they score, by norm and size") {
  const auto backend = make_backend(default_backend());
  const test::TempDir temp;
  Options options{*backend};
  int number = 0;
  for (const char* norm : {"layernorm", "batchnorm", "pn_v"}) {
    for (const int batch : {32, 8}) {
      for (const int seed : {1, 2}) {
        const std::string name = fmt::format("{}", ++number);
        options.runs.push_back(digits_run(temp / name, norm, batch, seed));
      }
    }
  }
  const Result result = run_small("batch-size", options);
  const auto& rows = result.tables.at(0).rows;
  REQUIRE(rows.size() == 1 + 6);
  CHECK(rows[1][0] == "batchnorm");
  CHECK(rows[1][1] == "8");
  CHECK(rows[4][0] == "layernorm");
  CHECK(rows[4][1] == "32");
  CHECK(rows[4][4] == "2");
  CHECK(rows[4][5] == "best");
  // The test losses that the trainings themselves recorded.
  std::vector<double> losses;
  for (const char* run : {"1", "2"}) {
    const report::Run read = report::read_run(temp / run);
    losses.push_back(report::value_in(read, {"test", "loss", "best", "", false}).value());
  }
  CHECK(std::abs(std::stod(rows[4][3]) - (losses[0] + losses[1]) / 2) < 1e-4);
  // All three grow, and three pairs are compared at two sizes; of digits it is open.
  CHECK(result.checks.size() == 3 + 3 * 2);
  for (const Check& c : result.checks) {
    CAPTURE(c.claim);
    CHECK_FALSE(c.judged);
    const bool is_equal = c.claim.find("m = 32") != std::string::npos &&
                          c.claim.find("layernorm above pn_v") != std::string::npos;
    CHECK((c.bound == "the source has them equal, which no test shows") == is_equal);
  }
  CHECK(result.drawings.at(0).plot.series.size() == 3);

  options.runs.push_back(options.runs[0]);
  test::check_refused([&] { run_small("batch-size", options); },
                      "[batch-size] --run: expected runs that differ");
  options.runs.back() = digits_run(temp / "shared", "batchnorm", 8, 3, "synchronised");
  test::check_refused([&] { run_small("batch-size", options); },
                      "[batch-size] --run: expected train.statistics = local");
  test::train_in(temp / "other", test::small_job({"train.batch=16", "train.max_steps=2"}));
  options.runs.back() = test::step_file(temp / "other", 2);
  test::check_refused(
      [&] { run_small("batch-size", options); },
      "[batch-size] --run: expected one train.batch * train.accumulate, got 16, 32");
}

TEST_CASE("study: landscape has ten steps along the gradient of every fifth update" *
          doctest::test_suite("slow")) {
  const auto backend = make_backend(default_backend());
  const Result deep = run("landscape", *backend);
  CHECK(deep.tables.at(1).rows.size() == 1 + 3);  // of three updates the first
  CHECK(deep.checks.size() == 8);
  for (const Check& c : deep.checks) CHECK(c.judged);
  const Result shallow = run_small("landscape", on_small_digits(*backend));
  CHECK(shallow.tables.at(1).rows.size() == 1 + 3 * 2);
  CHECK(shallow.drawings.at(0).plot.series.size() == 3);
  for (const Check& c : shallow.checks) CHECK_FALSE(c.judged);
  Options options{*backend};
  options.data = test::small_digits().string();
  test::check_refused([&] { run_small("landscape", options); },
                      "[landscape] --task: expected one beside --data or --recipe, got none");
}

TEST_CASE("study: covariate-shift looks at every layer but the first") {
  const auto backend = make_backend(default_backend());
  const Result result = run_small("covariate-shift", on_small_digits(*backend));
  const auto& lines = result.tables.at(1).rows;
  REQUIRE(lines.size() == 1 + 3 * 2 * 2);
  CHECK(lines[1][2] == "fc2");
  CHECK(lines[2][2] == "logits");
  CHECK(result.checks.size() == 3);
  Options options = on_small_digits(*backend);
  options.norms = {"batchnorm{keep=0.95}", "none"};
  CHECK(run_small("covariate-shift", options).checks.size() == 3);
  options.norms = {"none", "batchnorm", "none"};
  test::check_refused([&] { run_small("covariate-shift", options); },
                      "--norm: expected each norm once, got none twice");
}

TEST_CASE("study: noise after BatchNorm moves the activations more than BatchNorm lets them") {
  const auto backend = make_backend(default_backend());
  const Result result = run_small("noisy-batchnorm", on_small_digits(*backend));
  const auto& rows = result.tables.at(0).rows;
  REQUIRE(rows.size() == 4);
  CHECK(std::stod(rows[3][1]) > 2 * std::stod(rows[2][1]));
  CHECK(std::stod(rows[3][2]) > 2 * std::stod(rows[2][2]));
  REQUIRE(result.drawings.size() == 3);
  CHECK(result.drawings[1].plot.series.size() == 3);
  CHECK(result.drawings[1].plot.series[0].y.size() == 6);
}

TEST_CASE("study: noise after BatchNorm is seen in a linear network, too") {
  const auto backend = make_backend(default_backend());
  Options options{*backend, 0, 1, 6};
  options.task = "deep_linear";
  options.settings = {{"model.layers", "4"}};
  const auto rows = run_small("noisy-batchnorm", options).tables.at(0).rows;
  REQUIRE(rows.size() == 4);
  CHECK(std::stod(rows[3][1]) > 2 * std::stod(rows[2][1]));
}

TEST_CASE("study: statistics of every step, without a mean where the norm has none") {
  const auto backend = make_backend(default_backend());
  const Result result = run_small("statistics", on_small_digits(*backend));
  CHECK(result.tables.at(0).rows.size() == 1 + 3 * (6 + 3 + 2 + 2));
  const auto& lines = result.tables.at(2).rows;
  REQUIRE(lines.size() == 1 + 4 * 6);
  CHECK(lines[1][1] == "batchnorm");
  CHECK_FALSE(lines[1][4].empty());
  CHECK(lines[12][1] == "pn_v");
  CHECK(lines[12][4].empty());
  CHECK(result.drawings.size() == 6);
  Options options = on_small_digits(*backend);
  options.steps = 2;
  test::check_refused([&] { run_small("statistics", options); },
                      "[statistics] --steps: expected at least 3");
}

// An epoch of small digits has three updates.
TEST_CASE("study: statistics are summed up by epochs, too") {
  const auto backend = make_backend(default_backend());
  Options options = on_small_digits(*backend);
  options.norms = {"pn_v"};
  const Result result = run_small("statistics", options);
  const auto &epochs = result.tables.at(1).rows, &lines = result.tables.at(2).rows;
  const auto last_epoch = std::int64_t(std::ceil(std::stod(lines.back()[3])));
  CHECK(std::ssize(epochs) == 1 + 3 * last_epoch);
  CHECK(epochs.back()[5] == fmt::format("{}", last_epoch));
}

TEST_CASE(
    "study: statistics have batch norm and PN-V with scaled rows, too, and judge like by like" *
    doctest::test_suite("slow")) {
  const auto backend = make_backend(default_backend());
  Options options = on_small_pairs(*backend);
  const Result result = run_small("statistics", options);
  std::vector<std::string> claims;
  for (const Check& c : result.checks) {
    if (c.claim.find("dist_square, b") != std::string::npos) claims.push_back(c.claim);
  }
  const std::string start = "translation: log10 of the medians of dist_square, ",
                    norm = "batchnorm{keep=0.95}";
  CHECK(claims == std::vector<std::string>{
                      start + norm + " / pn_v", start + norm + " + ls / pn_v + ls",
                      start + norm + " + ls / " + source_norms(options, "translation").at(2),
                      start + norm + " + ls / " + source_norms(options, "translation").at(3)});
  options.settings.push_back({"model.scaling", "layerscaling"});
  const Result scaled = run_small("statistics", options);
  CHECK(scaled.drawings.at(1).plot.series.size() == 4);
}

TEST_CASE("study: statistics compares text with images by the first options of a norm" *
          doctest::test_suite("slow")) {
  const auto backend = make_backend(default_backend());
  Options options{*backend, 0, 1, 3};
  options.norms = {"batchnorm{keep=0.95}", "batchnorm"};
  const Result both = run_small("statistics", options);
  options.norms.pop_back();
  const Result first = run_small("statistics", options);
  REQUIRE(first.checks.size() == 10);
  REQUIRE(both.checks.size() == 10);
  for (std::size_t i = 0; i < 10; ++i) {
    CAPTURE(first.checks[i].claim);
    CHECK_FALSE(first.checks[i].judged);  // of one seed
    CHECK(both.checks[i].measured == first.checks[i].measured);
  }
}

}  // namespace
}  // namespace keel::study
