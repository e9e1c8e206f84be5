// The test that every norm variant passes. A variant describes itself in a NormSpec and calls
// check_norm; it tests its special properties itself.
#pragma once

#include <map>
#include <string>

#include "bench/norm_cases.h"
#include "tests/support/graph_runner.h"

namespace keel::test {

using namespace keel::bench;  // NOLINT: tests say NormCase, run_norm, ...

enum class NormParameters { kGainAndBias, kOneGain, kNone };

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
  // kOneGain: a gain of shape (1), and no bias.
  NormParameters parameters = NormParameters::kGainAndBias;
  // Whether a mean is subtracted. Without it the states are ones, and a constant group is not
  // special.
  bool centred = true;
  std::map<std::string, double> more = {};  // further parameters, of one number each
};

// In one SUBCASE each: gradients (by central differences, or against `composed`); agreement of
// the backend under test with the reference on generated and large cases, forward 16 eps, backward
// 64 eps; constant groups give exactly the bias; a NaN or Inf stays in its group and sizes from
// 1e-40 to FLT_MAX are handled; the same bits for any thread count, for any order and split of
// rows (kRows), and in place. Parts that need a fast backend are left out of a build without one.
void check_norm(const NormSpec& spec);

// Checks only the agreement with the reference, on the instruction set that is in force.
void check_agreement(const NormSpec& spec);
// Checks the agreement on a few sizes and on special values, for an option of a norm whose other
// options are checked in full.
void check_few_cases(const NormSpec& spec);
// Checks the agreement on one case.
void check_case(const NormSpec& spec, const NormCase& c);

// With a row mask a norm of columns gives what it gives without the rows left out, whatever those
// hold, and y = dx = 0 there: on every CPU backend. `states` are f32 (channels) each.
using MaskedBuild = std::function<Value(Graph&, const NormInputs&, Value mask)>;
void check_row_mask(const MaskedBuild& build, int states);

// Compares "y", "dx", "dgamma" and "dbeta", as far as `keys` names them, with a section of the
// worked examples, on every CPU backend of this build.
void check_golden(const NormSpec& spec, std::string_view section,
                  std::initializer_list<std::string_view> keys);

}  // namespace keel::test
