// "cfg-dep": synthetic sentences with their trees, so that the parser can be tried without a
// treebank. The place of a phrase depends on the words.
#pragma once

#include <cstdint>

#include "frontend/task/batch.h"
#include "models/dependency_parser/conll.h"

namespace keel::models {

// 8,000, 500 and 500 sentences of ten columns for training, validation and testing, a pure function
// of the seed:
//   sentence     subject [adverb] VERB [object [object]] [adverb] {phrase} "."
//                one adverb at most, in half of the sentences, on either side with equal
//                probability; 0, 1, 2 objects with .2, .6, .2; 0 to 3 phrases with .1, .3, .3, .3
//   noun phrase  [determiner] {adjective} NOUN; a determiner with .7;
//                0, 1, 2 adjectives with .6, .3, .1; all hang from the noun.
//                A subject has a phrase with .2.
//   phrase       PREPOSITION noun phrase; the preposition hangs from the verb, or from the noun
//                right before it,
//                if there is one whose phrase is at most 4 arcs from the verb
// If both are possible, the verb's class (its rank mod 3) decides: 0 prefers the verb, 1 the noun,
// and 2 leaves it to the preposition, which prefers the verb if its rank is even. The preferred one
// is taken with .9, and the only possible one always. Each category has 40 words, the r-th drawn
// with probability proportional to 1 / r, and a tag: VB NN DT JJ RB IN, and "." for the full stop,
// which hangs from the verb. Labels: root nsubj obj det amod advmod prep pobj punct. All trees are
// projective. A parser that always takes the preferred place finds 99.1 % of the heads.
Treebank make_cfg_dep(std::uint64_t seed, task::Split split);

}  // namespace keel::models
