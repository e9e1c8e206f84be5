// Text whose sentences stand in their order, wherever it comes from, before words have numbers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "frontend/data/corpus.h"

namespace keel::models {

// Sentences that follow each other, words with a space between. Where one passage ends and the next
// begins nothing follows.
struct Passage {
  std::vector<std::string> sentences;
  std::vector<std::int32_t> topics = {};  // of the sentences, where they are known
};

using OrderedText = data::Corpus<std::vector<Passage>>;

std::int64_t count_sentences(const std::vector<Passage>& passages);

}  // namespace keel::models
