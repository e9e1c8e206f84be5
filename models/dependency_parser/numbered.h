// A treebank whose words, tags and labels have numbers.
#pragma once

#include <memory>
#include <vector>

#include "frontend/task/batch.h"
#include "models/dependency_parser/features.h"
#include "models/dependency_parser/symbols.h"

namespace keel::models {

// By node: 0 is ROOT, n + 1 "none".
struct NumberedSentence {
  FeatureRows rows;
  // 0 for ROOT and "none"; a label that has no number is 0, too. Empty where the treebank has none.
  std::vector<std::int32_t> heads, labels;

  std::int32_t size() const { return static_cast<std::int32_t>(rows.words.size()) - 2; }
};

struct NumberedTreebank {
  Treebank treebank;
  std::shared_ptr<const Symbols> symbols;
  std::vector<NumberedSentence> sentences;

  NumberedTreebank(Treebank treebank, std::shared_ptr<const Symbols> symbols);
};

}  // namespace keel::models
