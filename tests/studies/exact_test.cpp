// The exact studies: all that they claim holds in float64, for other seeds as well, and none holds
// on a backend that errs in one op that it is about.
#include <doctest/doctest.h>

#include <algorithm>

#include "backends/backends.h"
#include "tests/studies/short_run.h"
#include "tests/support/checks.h"
#include "tests/support/faulty_backend.h"

namespace keel::study {
namespace {

void check_holds(const Result& result) {
  CHECK_FALSE(result.tables.empty());
  CHECK_FALSE(result.checks.empty());
  for (const Check& c : result.checks) {
    CAPTURE(c.claim);
    CAPTURE(c.measured);
    CAPTURE(c.bound);
    CHECK(c.holds);
  }
}

void check_finds(const std::string& study, const test::Mistake& mistake) {
  CAPTURE(mistake.op);
  CAPTURE(mistake.output);
  test::FaultyBackend backend(mistake);
  CHECK_FALSE(run(study, backend).holds());
  CHECK(backend.nodes() > 0);
}

// The measured value of the check whose claim contains `part`.
double measured(const Result& result, std::string_view part) {
  const auto found = std::ranges::find_if(
      result.checks, [part](const Check& c) { return c.claim.find(part) != std::string::npos; });
  REQUIRE(found != result.checks.end());
  return found->measured;
}

}  // namespace

TEST_CASE("study: every exact one holds" * doctest::test_suite("slow")) {
  const auto backend = make_backend("reference");
  for (const Study& study : studies()) {
    if (!study.exact) continue;
    CAPTURE(study.name);
    check_holds(run(study.name, *backend, 1));
  }
}

TEST_CASE("study: a mistake of 1e-6 in one element is found" * doctest::test_suite("slow")) {
  for (const char* op : {"layer_norm_backward", "detach_norm_backward", "ada_norm_backward"}) {
    check_finds("theorem1", {op});
  }
  for (const char* op : {"detach_norm_backward", "ada_norm_backward"}) {
    check_finds("theorem1-training", {op});
  }
  for (const char* op : {"layer_norm_backward", "weight_norm_backward"}) {
    check_finds("fisher-training", {op});
  }
  for (const char* op : {"layer_norm", "ada_norm"}) check_finds("theorem2", {op});
  for (const char* op : {"layer_norm", "batch_norm", "rms_norm", "pn_v", "weight_norm"}) {
    check_finds("invariance", {op});
  }
  for (const char* op : {"layer_norm", "batch_norm", "weight_norm", "layer_norm_backward",
                         "batch_norm_backward", "weight_norm_backward"}) {
    check_finds("fisher", {op});
  }
  for (const char* op : {"batch_norm_backward", "pn_v_backward"}) check_finds("lemma2", {op});
  for (int output : {3, 4}) check_finds("theorem4", {"power_norm", output});
  for (int output : {0, 3}) check_finds("theorem4", {"power_norm_backward", output});
}

TEST_CASE("study: a NaN is found" * doctest::test_suite("slow")) {
  for (const auto& [study, op] : {std::pair{"theorem2", "layer_norm"},
                                  {"invariance", "pn_v"},
                                  {"fisher", "batch_norm_backward"},
                                  {"lemma2", "pn_v_backward"}}) {
    check_finds(study, {op, 0, NAN});
  }
}

TEST_CASE("study: NaN never holds, and a result holds when every check does") {
  Result result;
  CHECK(result.holds());
  result.at_most("", 1, 1);
  result.above("", 2, 1);
  result.near("", 1.5, 1, 0.5);
  CHECK(result.holds());
  result.at_most("", 1.1, 1);
  result.above("", 1, 1);
  result.near("", 1.6, 1, 0.5);
  result.at_most("", NAN, 1);
  result.above("", NAN, 1);
  result.near("", NAN, 1, 1);
  CHECK_FALSE(result.holds());
  for (std::size_t i = 3; i < result.checks.size(); ++i) CHECK_FALSE(result.checks[i].holds);
}

TEST_CASE("study: what is not judged counts neither way") {
  Result result;
  result.not_judged("", -1, "a control");
  result.above_on_average("", std::vector{-1.0, -2.0}, 0, 3);
  CHECK(result.holds());
  CHECK(result.checks[1].measured == -1.5);
  CHECK(result.checks[1].bound == "needs 3 seeds");
  result.above_on_average("", std::vector{-1.0, 3.0, 1.0}, 0, 3);
  CHECK(result.checks[2].measured == 1);
  CHECK(result.holds());
  result.above_on_average("", std::vector{-1.0, -3.0, 1.0}, 0, 3);
  CHECK_FALSE(result.holds());
}

// With the first seed: the numbers that the specification of the studies lists.
TEST_CASE("study: listed numbers" * doctest::test_suite("slow")) {
  const auto backend = make_backend("reference");
  const Result theorem4 = run("theorem4", *backend), theorem2 = run("theorem2", *backend);
  CHECK(measured(theorem4, "Gamma 21 diverges") == doctest::Approx(1.899e8).epsilon(1e-3));
  const double grown[] = {0.29, 0.78, 1.76, 3.72, 7.64};
  const std::vector<std::string>& quadratic = theorem2.tables.at(0).rows.at(2);
  for (std::size_t i = 0; i < 5; ++i) {
    CHECK(quadratic.at(i + 1) == fmt::format("{:.2f}", grown[i]));
  }
  const Result fisher = run("fisher", *backend);
  for (const Result* result : {&theorem4, &theorem2, &fisher}) check_holds(*result);
  const char* angles[] = {"10.48", "2.648", "0.662", "0.166"};
  for (std::size_t i = 0; i < 4; ++i) {
    const std::vector<std::string>& cells = fisher.tables.at(2).rows.at(9 + i);
    CHECK(cells.at(0) == "batchnorm");
    CHECK(cells.at(2).starts_with(angles[i]));
  }
}

TEST_CASE("study: an unknown name is refused with the nearest known one") {
  test::check_refused([] { find_study("theorem3"); }, "study: ", "nearest: 'theorem");
}

}  // namespace keel::study
