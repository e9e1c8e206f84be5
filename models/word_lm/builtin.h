// Made-up running text, so that everybody can train a language model.
#pragma once

#include "models/word_lm/corpus.h"

namespace keel::models {

// "topic-bigram": 2,000 words. Documents of 40 lines have a topic z of 20; a line has 8 to 24
// words. A word is with a probability of .5 one of the topic's, those of the ranks r = z (mod 20)
// from 0 on, by Zipf's law of all words, 1 / (r + 1), restricted to these; with .3 the successor
// (13 w + 7) mod 2000 of the word w before it in the line, if there is one; and else any word, by
// Zipf's law. 600, 40 and 40 documents are for training, validation and testing. A batch of few
// lanes meets few topics, so its statistics vary.
WordCorpus make_topic_bigram();

}  // namespace keel::models
