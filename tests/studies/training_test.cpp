// The studies that train in float32, cut to three steps: what they find, and what they count.
#include <doctest/doctest.h>

#include <algorithm>

#include "backends/backends.h"
#include "studies/study.h"
#include "tests/support/faulty_backend.h"

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

}  // namespace
}  // namespace keel::study
