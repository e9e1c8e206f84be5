// A data set of labelled sentences, wherever it comes from, before its words have numbers.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "frontend/task/batch.h"
#include "frontend/text/tree.h"

namespace keel::models {

using Sentences = std::vector<text::LabelledSentence>;

struct Corpus {
  std::string name;          // "SST5"
  std::string origin;        // where it lies and in which form: "data/sentences, trees (.xz)"
  std::int32_t classes = 0;  // labels are 0 to classes - 1
  Sentences train, valid;
  // Reads the test split; a file that holds nothing else is opened here and not before.
  std::function<Sentences()> test;
  std::vector<task::LeftOut> left_out;  // of the training sentences
};

}  // namespace keel::models
