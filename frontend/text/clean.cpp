#include "frontend/text/clean.h"

#include <algorithm>

#include "src/core/error.h"

namespace keel::text {

void CleanOptions::validate() const {
  check(min_tokens >= 1, ErrorKind::kUsage, "[clean] min_tokens: expected 1 or more, got {}",
        min_tokens);
  check(max_tokens >= min_tokens, ErrorKind::kUsage,
        "[clean] max_tokens: expected {} or more, got {}", min_tokens, max_tokens);
  check(max_ratio >= 1, ErrorKind::kUsage, "[clean] max_ratio: expected 1 or more, got {}",
        max_ratio);
}

PairFault judge_pair(std::int64_t source, std::int64_t target, const CleanOptions& options) {
  const auto [shorter, longer] = std::minmax(source, target);
  if (shorter < options.min_tokens) return PairFault::kShort;
  if (longer > options.max_tokens) return PairFault::kLong;
  const double most = options.max_ratio * static_cast<double>(shorter);
  return static_cast<double>(longer) > most ? PairFault::kRatio : PairFault::kNone;
}

void CleanCounts::add(PairFault fault) {
  ++pairs;
  too_short += fault == PairFault::kShort;
  too_long += fault == PairFault::kLong;
  bad_ratio += fault == PairFault::kRatio;
}

}  // namespace keel::text
