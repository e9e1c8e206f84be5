// The test that every norm variant passes. A variant describes itself in a NormSpec and calls
// check_norm; it tests its special properties itself.
#pragma once

#include "frontend/compare/cases/norm_cases.h"
#include "tests/support/graph_runner.h"

namespace keel::test {

struct NormSpec {
  NormBuild build;
  NormLayout layout = NormLayout::kRows;
  int states = 0;  // running statistics: (parameter shape) each
  // The same function in elementary ops, with stop_gradient where a statistic counts as constant.
  // It is the oracle of a Detached gradient and may be given for an Exact one too.
  NormBuild composed = nullptr;
  std::int64_t least_n = 1;    // 2 where an unbiased variance is asked for
  bool own_statistics = true;  // false in evaluation: a group is not normalized by itself
  // y is moved by (batch mean - running mean) / running std. The batch mean is a sum of terms of
  // the size of the deviation and rounds by about one eps of it; over the running std, 1 here,
  // that much more error is allowed in y.
  bool moved = false;
};

// In one SUBCASE each: gradients (by central differences, or against `composed`); agreement of
// the backend under test with the reference on generated and large cases, forward 16 eps, backward
// 64 eps; constant groups give exactly the bias; a NaN or Inf stays in its group and sizes from
// 1e-40 to FLT_MAX are handled; the same bits for any thread count, for any order and split of
// rows (kRows), and in place. Parts that need a fast backend are left out of a build without one.
void check_norm(const NormSpec& spec);

// Checks only the agreement with the reference, on the instruction set that is in force.
void check_agreement(const NormSpec& spec);

// Compares "y", "dx", "dgamma" and "dbeta", as far as `keys` names them, with a section of the
// worked examples, on every CPU backend of this build.
void check_golden(const NormSpec& spec, std::string_view section,
                  std::initializer_list<std::string_view> keys);

}  // namespace keel::test
