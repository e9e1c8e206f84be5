// Every verdict of every study on synthetic numbers: it holds of those within the bounds, and each
// of its claims falls by itself as soon as its numbers are beyond.
#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "tests/studies/verdict_case.h"

namespace keel::study {
namespace {

std::vector<VerdictCase> all_cases() {
  std::vector<VerdictCase> all = exact_verdict_cases();
  for (const auto& cases :
       {trained_verdict_cases(), shen_verdict_cases(), recurrent_verdict_cases()}) {
    all.insert(all.end(), cases.begin(), cases.end());
  }
  return all;
}

// The claims that do not hold.
std::set<std::string> fallen(const Result& result) {
  std::set<std::string> claims;
  for (const Check& check : result.checks) {
    if (!check.holds) claims.insert(check.claim);
  }
  return claims;
}

TEST_CASE("studies: each claim holds within its bound, and falls just beyond it") {
  for (const VerdictCase& made : all_cases()) {
    CAPTURE(made.study);
    CHECK(fallen(made.good) == std::set<std::string>{});
    CHECK(made.good.checks.empty() == made.spoiled.empty());
    std::set<std::string> covered;
    for (const auto& [part, result] : made.spoiled) {
      CAPTURE(part);
      const std::set<std::string> claims = fallen(result);
      CHECK_FALSE(claims.empty());
      for (const std::string& claim : claims) CHECK(claim.find(part) != std::string::npos);
      covered.insert(claims.begin(), claims.end());
    }
    for (const Check& check : made.good.checks) {
      CAPTURE(check.claim);
      CHECK(covered.contains(check.claim));
    }
  }
}

Standing standing_of_made(bool holds, std::size_t seeds, bool is_tested = false) {
  return standing_of(
      {.claim = "c", .bound = "b", .holds = holds, .seeds = seeds, .is_tested = is_tested}, false);
}

TEST_CASE(
    "studies: a claim is said to hold over three seeds or to rounding, else it is suggested") {
  CHECK(standing_of_made(true, 1) == Standing::kSuggested);
  CHECK(standing_of_made(true, 2) == Standing::kSuggested);
  CHECK(standing_of_made(true, 3) == Standing::kHolds);
  CHECK(standing_of_made(false, 1) == Standing::kDoubted);
  CHECK(standing_of_made(false, 3) == Standing::kFails);
  CHECK(standing_of_made(false, 3, true) == Standing::kNotShown);
  CHECK(standing_of({.claim = "c", .bound = "b", .holds = true}, true) == Standing::kHolds);
  CHECK(standing_of({.claim = "c", .bound = "b", .judged = false, .seeds = 5}, false) ==
        Standing::kOpen);
  Result result;
  result.at_most("one", 0, 1);
  result.seeds = 3;
  result.above("three", 1, 0);
  result.near("three", 1, 1, 0);
  result.above_on_average("a mean", std::vector{1.0, 2.0, 3.0}, 0, 3);
  result.above_zero_over_seeds("tested", std::vector{1.0, 1.1, 0.9, 1.0});
  std::vector<std::size_t> seeds;
  for (const Check& check : result.checks) seeds.push_back(check.seeds);
  CHECK(seeds == std::vector<std::size_t>{1, 3, 3, 3, 4});
  CHECK(standing_of(result.checks[3], false) == Standing::kSuggested);
  CHECK(standing_of(result.checks[4], false) == Standing::kHolds);
}

TEST_CASE("studies: the paragraph counts claims and names those that did not hold") {
  const Study study{"s", "a subject", "A source", nullptr};
  Study exact = study;
  exact.exact = true;
  Result result;
  result.at_most("a", 0, 1);
  result.at_most("b", 0, 1);
  CHECK(paragraph_of(exact, result) == "A source, on a subject. 2 claims hold to rounding.");
  CHECK(paragraph_of(study, result) ==
        "A source, on a subject. One seed suggests that 2 claims hold; a verdict takes three seeds "
        "and a test.");
  result.checks.pop_back();
  result.at_most("c", 3, 1);
  result.not_judged("d", 1, "more");
  CHECK(paragraph_of(study, result) ==
        "A source, on a subject. One seed suggests that 1 claim holds; a verdict takes three seeds "
        "and a test. Not seen: c (3). 1 claim was measured and not judged.");
  result.checks.clear();
  result.seeds = 3;
  for (int i = 0; i < 40; ++i) result.at_most(fmt::format("a claim {}", i), i < 20 ? 0 : 2, 1);
  result.above_zero_over_seeds("tested", std::vector{1.0, 3.0, -0.5});
  const std::string text = paragraph_of(study, result);
  CHECK(
      text ==
      "A source, on a subject. 20 claims hold over three seeds or more. Not held: a claim 20 "
      "(2); a claim 21 (2); a claim 22 (2); and 17 more. Not shown by the t test: tested (1.17).");
}

TEST_CASE("studies: no study is left out") {
  std::set<std::string> named, listed;
  for (const VerdictCase& made : all_cases()) named.insert(made.study);
  for (const Study& study : studies()) listed.insert(study.name);
  CHECK(named == listed);
}

}  // namespace
}  // namespace keel::study
