// The largest distance of attention in float32 from its definition.
#pragma once

#include "tests/support/attention_step.h"

namespace keel::test {

// For every element of each result the distance that roundings may add up to. `expected` are the
// results of the reference for a step on numbers that float32 holds.
//
// With eps = 2^-24: a chain of n products and sums is off by at most n eps times the sum of their
// sizes, whatever its order. So for the scores
//     es_ij = eps (w + 3) |scale| sum |q k|        two more for scale, one for its rounding
// Every exponential is off by at most 4 eps of itself and by the rounding of its argument, which is
// at most `range`, the row's largest score less its smallest. Each of t tiles of keys may scale
// earlier sums down; these arguments add up to at most `range` again:
//     e_ij = es_ij + eps (2 range + 4 + 6 t)      relative, of exp(s_ij - max)
//     mean_i = sum P e       relative, of their sum, and n eps for adding it up
//     ey = sum over j of keep P |v| (e_ij + mean_i + (2 n + 8) eps)
//     elog = mean_i + eps (n + 4 + 3 |lse| + 3 log(n + 1) + range)
// and, with p from scores and lse,
//     ep_ij = es_ij + elog + eps (|s_ij - lse| + 6)                    relative, of P
//     edelta = sum |dy| ey + (w + 2) eps sum |dy y|
//     eds_ij = P ((ep_ij + 3 eps) (|keep dP| + |delta|) + keep (w + 3) eps sum |dy v| + edelta)
//     edq = |scale| sum over j of |k| (eds + (n + 4) eps |dS|), edk likewise, and
//     edv = sum over i of keep P |dy| (ep + (m + 4) eps)
Results attention_bounds(const AttentionStep& step, const Results& expected);

}  // namespace keel::test
