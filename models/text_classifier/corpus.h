// A data set of labelled sentences from any source, before its words have numbers.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "frontend/data/corpus.h"
#include "frontend/task/batch.h"
#include "frontend/text/tree.h"

namespace keel::models {

using Sentences = std::vector<text::LabelledSentence>;

struct Corpus : data::Corpus<Sentences> {
  std::vector<std::string> labels;  // the names of the classes; a sentence has an index into them
  // The file of each part; empty if the parts have no files of their own: `origin` names it.
  std::array<std::string, 3> files = {};
  // The numbers of each part's rows in its file; empty: all of them, in order.
  std::array<std::vector<std::int64_t>, 3> numbers = {};

  data::SplitNotes notes(task::Split split) const {
    data::SplitNotes notes = data::Corpus<Sentences>::notes(split);
    const std::string& file = files[static_cast<std::size_t>(split)];
    if (!file.empty()) notes.source = file;
    notes.numbers = numbers[static_cast<std::size_t>(split)];
    return notes;
  }
};

}  // namespace keel::models
