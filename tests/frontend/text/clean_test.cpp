// Which pairs of lengths stay.
#include "frontend/text/clean.h"

#include "tests/support/input_checks.h"

namespace keel::text {
namespace {

TEST_CASE("clean: lengths and ratios at their limits") {
  const CleanOptions options;
  CHECK(judge_pair(1, 1, options) == PairFault::kNone);
  CHECK(judge_pair(0, 1, options) == PairFault::kShort);
  CHECK(judge_pair(3, 0, options) == PairFault::kShort);
  CHECK(judge_pair(175, 175, options) == PairFault::kNone);
  CHECK(judge_pair(170, 176, options) == PairFault::kLong);
  CHECK(judge_pair(2, 3, options) == PairFault::kNone);
  CHECK(judge_pair(3, 2, options) == PairFault::kNone);
  CHECK(judge_pair(2, 4, options) == PairFault::kRatio);
  CHECK(judge_pair(100, 151, options) == PairFault::kRatio);
  CHECK(judge_pair(1, 1000, {.max_tokens = 1000, .max_ratio = 1000}) == PairFault::kNone);
}

TEST_CASE("clean: counts by cause") {
  CleanCounts counts;
  for (PairFault fault : {PairFault::kNone, PairFault::kShort, PairFault::kRatio, PairFault::kRatio,
                          PairFault::kLong, PairFault::kNone}) {
    counts.add(fault);
  }
  CHECK(counts.pairs == 6);
  CHECK(counts.kept() == 2);
  CHECK(counts.bad_ratio == 2);
}

TEST_CASE("clean: options that cannot be") {
  const auto refused = [](std::string_view text, const CleanOptions& options) {
    return test::refuses(ErrorKind::kUsage, text, [&] { options.validate(); });
  };
  CHECK(refused("min_tokens: expected 1 or more, got 0", {.min_tokens = 0}));
  CHECK(refused("max_tokens: expected 5 or more, got 4", {.min_tokens = 5, .max_tokens = 4}));
  CHECK(refused("max_ratio: expected 1 or more, got 0.5", {.max_ratio = 0.5}));
}

}  // namespace
}  // namespace keel::text
