// Every verdict of every study on made-up numbers: it holds of those within the bounds, and each of
// its claims falls by itself as soon as its numbers are beyond.
#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "tests/studies/verdict_case.h"

namespace keel::study {
namespace {

std::vector<VerdictCase> all_cases() {
  std::vector<VerdictCase> all = exact_verdict_cases();
  for (const auto& cases : {trained_verdict_cases(), shen_verdict_cases()}) {
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

TEST_CASE("studies: no study is left out") {
  std::set<std::string> named, listed;
  for (const VerdictCase& made : all_cases()) named.insert(made.study);
  for (const Study& study : studies()) listed.insert(study.name);
  CHECK(named == listed);
}

}  // namespace
}  // namespace keel::study
