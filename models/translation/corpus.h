// Sentences and their translations, wherever they come from, before their words have numbers.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "frontend/task/batch.h"
#include "frontend/text/iwslt14.h"

namespace keel::models {

using text::SentencePairs;

// Lines of tokens with blanks between. Which side is the source is decided already.
struct ParallelCorpus {
  std::string name;    // "de-en"
  std::string origin;  // where it lies and in which form
  SentencePairs train, valid;
  // Reads the test split; a file that holds nothing else is opened here and not before.
  std::function<SentencePairs()> test;
  // The target side of the validation or test split as people wrote it; empty when it is not known.
  std::function<std::vector<std::string>(task::Split)> raw_targets;
  std::vector<task::LeftOut> left_out;  // of the training pairs
};

}  // namespace keel::models
