// The lines of handwriting as numbers: files or the generator, one alphabet, one scale.
#pragma once

#include <memory>
#include <vector>

#include "frontend/task/model.h"
#include "models/handwriting/scale.h"
#include "models/handwriting/stroke_stream.h"

namespace keel::models {

// What the network takes from the training data.
struct HandwritingFacts {
  Alphabet alphabet;
  OffsetScale scale;

  task::Assets assets() const;
  // Throws Error{kBadInput} naming the asset that is missing or damaged.
  static HandwritingFacts parse(const task::Assets& assets);
};

class HandwritingData {
 public:
  // With facts of a checkpoint its scale holds. Throws as read_iam, and Error{kBadInput} for
  // data of another alphabet than the checkpoint's.
  static HandwritingData load(const task::DataRequest& request,
                              const std::optional<HandwritingFacts>& facts = std::nullopt);

  const HandwritingFacts& facts() const { return facts_; }
  std::unique_ptr<StrokeStream> stream(task::Split split, const StrokeStreamOptions& options) const;

 private:
  HandwritingData(HandwritingCorpus corpus, HandwritingFacts facts)
      : corpus_(std::move(corpus)), facts_(std::move(facts)) {}

  HandwritingCorpus corpus_;
  HandwritingFacts facts_;
};

}  // namespace keel::models
