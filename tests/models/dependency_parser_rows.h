// Treebanks of a few words for the parser's tests.
#pragma once

#include <doctest/doctest.h>

#include <memory>
#include <string>

#include "models/dependency_parser/numbered.h"

namespace keel::models {

// A row of ten columns.
inline std::string conll_row(int id, const char* form, const char* tag, int head,
                             const char* label) {
  return fmt::format("{}\t{}\t_\t{}\t{}\t_\t{}\t{}\t_\t_\n", id, form, tag, tag, head, label);
}

// "the dog barks" and "the New_York": labels det, root, nsubj.
inline const std::string kTinyTreebank =
    conll_row(1, "the", "DT", 2, "det") + conll_row(2, "dog", "NN", 3, "nsubj") +
    conll_row(3, "barks", "X", 0, "root") + "\n" + conll_row(1, "the", "DT", 2, "det") +
    conll_row(2, "New York", "NN", 0, "root");

// A treebank called "bank" with the symbols of another one.
inline std::shared_ptr<const NumberedTreebank> numbered_bank(const std::string& text,
                                                             const std::string& training) {
  return std::make_shared<const NumberedTreebank>(
      read_conll(text, "bank", {}),
      std::make_shared<const Symbols>(read_conll(training, "training", {}), 1));
}

}  // namespace keel::models
