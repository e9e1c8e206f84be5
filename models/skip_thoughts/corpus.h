// Text whose sentences are in order, from any source, before words have numbers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "frontend/data/corpus.h"

namespace keel::models {

// Consecutive sentences, words separated by a space. The last sentence of a passage has no next
// one.
struct Passage {
  std::vector<std::string> sentences;
  std::vector<std::int32_t> topics = {};  // of the sentences, if known
};

using OrderedText = data::Corpus<std::vector<Passage>>;

std::int64_t count_sentences(const std::vector<Passage>& passages);

}  // namespace keel::models
