// Sentences and their translations, wherever they come from, before their words have numbers.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "frontend/data/corpus.h"
#include "frontend/text/iwslt14.h"

namespace keel::models {

using text::SentencePairs;

// Lines of tokens with blanks between. Which side is the source is decided already.
struct ParallelCorpus : data::Corpus<SentencePairs> {
  // The target side of the validation or test split as people wrote it; empty when it is not known.
  std::function<std::vector<std::string>(task::Split)> raw_targets = {};
};

}  // namespace keel::models
