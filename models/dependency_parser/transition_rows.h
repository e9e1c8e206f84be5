// The oracle's transitions of a treebank as batches to train on or to measure.
#pragma once

#include <memory>
#include <vector>

#include "frontend/data/data_loader.h"
#include "models/dependency_parser/inputs.h"
#include "models/dependency_parser/numbered.h"

namespace keel::models {

// Rows are the transitions of all sentences that have a derivation, in their order, in
// data::FixedBatches; a sentence of n tokens has 2n. Training leaves out, and names, sentences
// without one. Evaluation measures the loss of the others, while its decoder parses every sentence;
// there a transition whose label the network does not know has no class and does not count.
class TransitionRows final : public data::Dataset {
 public:
  // `skipped`: rows that the treebank no longer holds.
  explicit TransitionRows(std::shared_ptr<const NumberedTreebank> treebank,
                          std::vector<task::Skipped> skipped = {});

  // Throws Error{kBadInput} if a shuffled stream has no row or a label without a number,
  // Error{kUsage} if it would have no batch.
  std::unique_ptr<data::BatchSampler> plan(const task::StreamOptions& options) const override;
  std::vector<task::Input> inputs(const task::Sizes& sizes) const override {
    return parser_inputs(sizes.at(0), treebank_->symbols->classes().size());
  }
  void clear(task::Batch& batch, const task::Sizes& sizes,
             const std::vector<task::Input>&) const override {
    clear_configurations(batch, sizes.at(0), *treebank_->symbols);
  }
  void put(task::Batch& batch, const data::RowVisit& visit) const override;
  double items(std::int64_t row) const override { return example(row).label != kNoClass ? 1 : 0; }
  std::shared_ptr<task::Decoder> decoder(std::int64_t batch) const override;

 private:
  struct Example {
    FeatureNodes nodes;
    std::uint32_t sentence;
    std::int32_t label;  // the class, or -1
    Legal legal;
  };

  void add(std::uint32_t sentence, Configuration& configuration);
  void expect_trainable() const;
  const Example& example(std::int64_t row) const {
    return examples_[static_cast<std::size_t>(row)];
  }

  std::shared_ptr<const NumberedTreebank> treebank_;
  std::vector<Example> examples_;
};

}  // namespace keel::models
