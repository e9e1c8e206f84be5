// A verdict of a study on synthetic numbers: some of which all claims hold, and others of which one
// each just does not.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "studies/study.h"

namespace keel::study {

struct VerdictCase {
  std::string study;
  Result good;
  std::vector<std::pair<std::string, Result>> spoiled;  // by a part of the claim that no more holds
};

// Makes a change to the numbers that takes away the claim that has `part` in it.
template <class Numbers>
struct Spoil {
  std::string part;
  std::function<void(Numbers&)> change;
};

template <class Numbers>
VerdictCase verdict_case(const std::string& study, const Numbers& good,
                         const std::function<void(const Numbers&, Result&)>& judge,
                         const std::vector<Spoil<Numbers>>& spoils) {
  VerdictCase made{study, {}, {}};
  judge(good, made.good);
  for (const Spoil<Numbers>& spoil : spoils) {
    Numbers numbers = good;
    spoil.change(numbers);
    judge(numbers, made.spoiled.emplace_back(spoil.part, Result()).second);
  }
  return made;
}

std::vector<VerdictCase> exact_verdict_cases();
std::vector<VerdictCase> trained_verdict_cases();
std::vector<VerdictCase> shen_verdict_cases();
std::vector<VerdictCase> recurrent_verdict_cases();

}  // namespace keel::study
