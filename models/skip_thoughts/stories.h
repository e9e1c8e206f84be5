// Made-up stories, so that everybody can train on ordered sentences.
#pragma once

#include "models/skip_thoughts/corpus.h"

namespace keel::models {

// "stories": 20 topics; a sentence has that of the one before it with a probability of 0.8, else
// the next one. It has 5 to 9 words, each with a probability of 0.6 one of the 30 words of its
// topic, evenly, else one of 400 words of all topics, by Zipf's law. Neighbours so share words, and
// a sentence says more of its neighbours than those words do: its topic. 200, 20 and 50 stories of
// 40 sentences, for training, validation and testing; topics are given.
inline constexpr std::int32_t kTopics = 20;
OrderedText make_stories();

}  // namespace keel::models
