// "lex200": synthetic sentences whose translations follow from them by rules, so that translation
// can be tried without a download.
#pragma once

#include "models/translation/corpus.h"

namespace keel::models {

// 20,000, 500 and 500 pairs for training, validation and testing, always the same ones.
//   words      s0 to s199, word r drawn with a probability proportional to 1 / (r + 2)
//   sentence   a topic z of 0 to 9 and a length of 4 to 14, all equally likely; each word with
//              probability 1/2 from all words, else from those with r mod 10 = z
//   its translation, from left to right
//              word r becomes t((7 r + 3) mod 200); after a word with r mod 5 = 0 comes
//              g(first mod 3), first being the sentence's first word; a word with r mod 4 = 0
//              changes places with the next one, if there is one, whatever that is
// The translation is a function of the sentence: a network can get every word of it right.
ParallelCorpus make_lex200();

// The translation that these rules give to a sentence of source words, by their ranks.
std::vector<std::string> lex200_translation(const std::vector<int>& ranks);

}  // namespace keel::models
