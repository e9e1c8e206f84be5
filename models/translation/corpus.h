// Sentences and their translations from any source, before their words have numbers.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "frontend/data/corpus.h"
#include "frontend/task/batch.h"
#include "frontend/text/iwslt14.h"

namespace keel::models {

using text::SentencePairs;

// Lines of tokens separated by blanks. Source and target sides are already chosen.
struct ParallelCorpus : data::Corpus<SentencePairs> {
  // The target side of the validation or test split as people wrote it; empty if unknown.
  std::function<std::vector<std::string>(task::Split)> raw_targets = {};
};

}  // namespace keel::models
