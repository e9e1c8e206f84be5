// The studies that train in float32, cut to three steps: what they find, and what they count.
#include <doctest/doctest.h>

#include <algorithm>

#include "backends/backends.h"
#include "studies/study.h"
#include "tests/support/faulty_backend.h"
#include "tests/support/small_run.h"

namespace keel::study {
namespace {

Result run(const std::string& name, Backend& backend) {
  return find_study(name).run({backend, 0, 1, 3});
}

const Check& check_of(const Result& result, const std::string& claim) {
  const auto found = std::ranges::find(result.checks, claim, &Check::claim);
  REQUIRE(found != result.checks.end());
  return *found;
}

TEST_CASE("study: theorem4-training holds, and finds a mistake in nu or in the gradient of gain") {
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

Options on_small_digits(Backend& backend) {
  Options options{backend, 0, 1, 6};
  options.task = "mnist_mlp";
  options.data = test::small_digits().string();
  options.settings = {{"train.batch", "32"}, {"model.hidden", "8"}};
  return options;
}

Result run_small(const std::string& name, const Options& options) {
  return find_study(name).run(options);
}

TEST_CASE("study: landscape has ten steps along the gradient of every fifth update") {
  const auto backend = make_backend(default_backend());
  const Result deep = run("landscape", *backend);
  CHECK(deep.tables.at(1).rows.size() == 1 + 3);  // of three updates the first
  CHECK(deep.checks.size() == 8);
  for (const Check& c : deep.checks) CHECK(c.judged);
  const Result shallow = run_small("landscape", on_small_digits(*backend));
  CHECK(shallow.tables.at(1).rows.size() == 1 + 3 * 2);
  CHECK(shallow.drawings.at(0).plot.series.size() == 3);
  for (const Check& c : shallow.checks) CHECK_FALSE(c.judged);
}

TEST_CASE("study: covariate-shift looks at every layer but the first") {
  const auto backend = make_backend(default_backend());
  const Result result = run_small("covariate-shift", on_small_digits(*backend));
  const auto& lines = result.tables.at(1).rows;
  REQUIRE(lines.size() == 1 + 3 * 2 * 2);
  CHECK(lines[1][2] == "fc2");
  CHECK(lines[2][2] == "logits");
  CHECK(result.checks.size() == 3);
}

TEST_CASE("study: noise behind BatchNorm moves the activations more than BatchNorm lets them") {
  const auto backend = make_backend(default_backend());
  const Result result = run_small("noisy-batchnorm", on_small_digits(*backend));
  const auto& rows = result.tables.at(0).rows;
  REQUIRE(rows.size() == 4);
  CHECK(std::stod(rows[3][1]) > 2 * std::stod(rows[2][1]));
  CHECK(std::stod(rows[3][2]) > 2 * std::stod(rows[2][2]));
}

TEST_CASE("study: statistics of every step, without a mean where the norm has none") {
  const auto backend = make_backend(default_backend());
  const Result result = run_small("statistics", on_small_digits(*backend));
  CHECK(result.tables.at(0).rows.size() == 1 + 4 + 2);
  const auto& lines = result.tables.at(1).rows;
  REQUIRE(lines.size() == 1 + 2 * 6);
  CHECK(lines[1][1] == "batchnorm");
  CHECK_FALSE(lines[1][4].empty());
  CHECK(lines[12][1] == "pn_v");
  CHECK(lines[12][4].empty());
  CHECK(result.drawings.size() == 4);
}

}  // namespace
}  // namespace keel::study
