// The lines of handwriting as numbers: files or the generator, one alphabet, one scale.
#pragma once

#include <vector>

#include "frontend/task/task.h"
#include "models/handwriting/scale.h"
#include "models/handwriting/stroke_rows.h"

namespace keel::models {

// The facts that the network takes from the training data.
struct HandwritingFacts {
  Alphabet alphabet;
  OffsetScale scale;

  static HandwritingFacts of(const HandwritingCorpus& corpus);
  task::Assets assets() const;
  // Throws Error{kBadInput} naming the asset that is missing or damaged.
  static HandwritingFacts parse(const task::Assets& assets);
};

// The data for training, or for an evaluation of the network that `known` was kept of. Throws as
// read_iam.
HandwritingCorpus read_handwriting(const task::DataRequest& request,
                                   const HandwritingFacts* known = nullptr);

std::vector<StrokeRow> stroke_rows(const WrittenLines& lines, const OffsetScale& scale);

}  // namespace keel::models
