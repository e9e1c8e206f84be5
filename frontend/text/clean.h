// Judges by their lengths which pairs of sentences are worth training on.
#pragma once

#include <cstdint>
#include <string_view>

namespace keel::text {

struct CleanOptions {
  std::int64_t min_tokens = 1, max_tokens = 175;  // of each side
  double max_ratio = 1.5;                         // of the longer side to the shorter one
  // Throws Error{kUsage} for lengths below 1 or in the wrong order, and a ratio below 1.
  void validate() const;
};

enum class PairFault : std::uint8_t { kNone, kShort, kLong, kRatio };

// Whether to keep a pair with these numbers of tokens, or why not. The largest ratio is allowed.
PairFault judge_pair(std::int64_t source, std::int64_t target, const CleanOptions& options);

// The number of pairs, and the number removed for each reason.
struct CleanCounts {
  std::int64_t pairs = 0, too_short = 0, too_long = 0, bad_ratio = 0;
  std::int64_t kept() const { return pairs - too_short - too_long - bad_ratio; }
  void add(PairFault fault);
};

}  // namespace keel::text
