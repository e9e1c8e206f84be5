// A data set of labelled sentences, wherever it comes from, before its words have numbers.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "frontend/task/batch.h"
#include "frontend/text/tree.h"

namespace keel::models {

using Sentences = std::vector<text::LabelledSentence>;

struct Corpus {
  std::string origin;                  // where it lies and in which form
  std::array<std::string, 3> sources;  // what train, valid and test are read from, for people
  std::vector<std::string> labels;     // the names of the classes; a sentence has a place in them
  Sentences train, valid;
  // Reads the test split; a file that holds nothing else is opened here and not before.
  std::function<Sentences()> test;
  std::vector<task::LeftOut> left_out;  // of the training sentences
};

// "ORIGIN, train", and so for valid and test.
inline std::array<std::string, 3> sources_of(const std::string& origin) {
  return {origin + ", train", origin + ", valid", origin + ", test"};
}

}  // namespace keel::models
