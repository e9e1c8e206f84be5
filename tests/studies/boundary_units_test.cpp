// Units near the boundary of images, and inner ones.
#include <doctest/doctest.h>

#include "backends/backends.h"
#include "tests/studies/short_run.h"
#include "tests/support/checks.h"

namespace keel::study {
namespace {

Options on_images(Backend& backend, const std::string& task) {
  Options options = on_small_digits(backend);
  options.task = task;
  options.norms = {"none"};
  options.settings = {{"train.batch", "32"}};
  return options;
}

TEST_CASE("study: boundary-units measures both parts of every layer of ReLUs on images") {
  const auto backend = make_backend(default_backend());
  const Result result = run_small("boundary-units", on_images(*backend, "mnist_cnn"));
  const auto& rows = result.tables.at(0).rows;
  REQUIRE(rows.size() == 1 + 2 * 2);
  for (std::size_t i = 1; i < rows.size(); ++i) {
    CAPTURE(i);
    CHECK(rows[i][2] == (i < 3 ? "1" : "2"));
    CHECK(rows[i][3] == (i % 2 == 1 ? "boundary" : "inner"));
    const double on = std::stod(rows[i][4]), rare = std::stod(rows[i][5]);
    CHECK(on > 0);
    CHECK(on < 1);
    CHECK(rare >= 0);
    CHECK(rare <= 1);
    CHECK(std::stod(rows[i][6]) > 0);  // a ReLU's mean
  }
  REQUIRE(result.checks.size() == 3);
  for (const Check& check : result.checks) CHECK_FALSE(check.judged);  // of one seed
}

// Digits have a dark margin, so that a unit beside it varies less.
TEST_CASE("study: boundary-units tells the margin of digits from their middle") {
  const auto backend = make_backend(default_backend());
  Options options = on_images(*backend, "mnist_cnn");
  options.data.clear();
  options.steps = 1;
  options.settings.emplace_back("data.train_rows", "256");
  const Result result = run_small("boundary-units", options);
  const auto& rows = result.tables.at(0).rows;
  CHECK(std::stod(rows.at(1).at(7)) < 0.5 * std::stod(rows.at(2).at(7)));
}

TEST_CASE("study: boundary-units refuses a network without images") {
  const auto backend = make_backend(default_backend());
  test::check_refused([&] { run_small("boundary-units", on_images(*backend, "mnist_mlp")); },
                      "[boundary-units] --task: ", "expected a network with ReLUs on images");
}

}  // namespace
}  // namespace keel::study
