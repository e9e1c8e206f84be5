// Draws tokens from the logits of a language model.
#pragma once

#include <cstdint>
#include <span>

#include "frontend/task/continuation.h"

namespace keel::decode {

// The token that `uniform`, in [0, 1), draws. Tokens are ordered by logit, the largest first, among
// equal ones by number; top_k and then top_p keep the first of them; the drawn token is the first
// at which the sum of the kept probabilities exceeds `uniform` times their total. Computed in
// float64, so that rounding hardly ever decides. Throws Error{kDiverged} for a
// logit that is not a number or is +infinity, and for no logit above -infinity.
std::int32_t drawn_token(std::span<const float> logits, const task::SampleOptions& options,
                         double uniform);

// The number for token n of a text: a pure function of (seed, n).
double token_uniform(std::uint64_t seed, std::int64_t n);

}  // namespace keel::decode
