// Made-up stories, so that everybody can train on ordered sentences.
#pragma once

#include "models/skip_thoughts/corpus.h"

namespace keel::models {

// "stories": 20 topics. A sentence has the topic of the previous one with a probability of 0.8,
// else the next topic. It has 5 to 9 words, each with a probability of 0.6 one of the 30 words of
// its topic, evenly, else one of 400 words of all topics, by Zipf's law. So neighbours share words
// and, beyond those, a topic. 200, 20 and 50 stories of 40 sentences are for training, validation
// and testing; topics are given.
inline constexpr std::int32_t kTopics = 20;
OrderedText make_stories();

}  // namespace keel::models
