// The oracle's transitions of a treebank as batches to train on or to measure.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "frontend/data/batcher.h"
#include "frontend/task/batch.h"
#include "models/dependency_parser/inputs.h"
#include "models/dependency_parser/numbered.h"

namespace keel::models {

// Rows are the transitions of all sentences that have a derivation, in their order; a sentence of n
// tokens has 2n. What has none is left out of training and named; an evaluation, whose decoder
// parses every sentence, measures the loss of those that have one. There a transition whose label
// the network does not know has no class and does not count; if no row is left there is one batch
// of padding. A shuffled stream leaves out the rows behind the last whole batch, other ones every
// epoch.
class TransitionStream final : public task::Stream {
 public:
  // Throws Error{kBadInput} when a shuffled stream has no row or a label without a number,
  // Error{kUsage} when it would have no batch.
  TransitionStream(std::shared_ptr<const NumberedTreebank> treebank,
                   const task::StreamOptions& options);

  const std::string& source() const override { return treebank_->treebank.name; }
  std::int64_t rows() const override { return std::ssize(examples_); }
  std::int64_t steps(std::uint32_t) override { return batcher_ ? batcher_->steps() : 1; }
  double items(std::uint32_t epoch, std::int64_t step) override;
  const task::Batch& at(std::uint32_t epoch, std::int64_t step) override;
  const task::Batch& pick(std::span<const std::int64_t> rows) override;
  std::vector<task::Sizes> shapes() const override;
  std::vector<task::LeftOut> left_out() const override;
  std::unique_ptr<task::Decoder> decoder() const override;

 private:
  struct Example {
    FeatureNodes nodes;
    std::uint32_t sentence;
    std::int32_t label;  // the class, or -1
    Legal legal;
  };
  // Of sentences that have no derivation.
  struct Underivable {
    std::int64_t sentences = 0, tokens = 0;
  };

  void add(std::uint32_t sentence);
  void leave_out(const NumberedSentence& sentence);
  void expect_trainable() const;
  const Example& example(std::int64_t row) const {
    return examples_[static_cast<std::size_t>(row)];
  }

  std::shared_ptr<const NumberedTreebank> treebank_;
  task::StreamOptions options_;
  std::vector<Example> examples_;
  Underivable crossing_, roots_, cycles_;
  std::optional<data::Batcher> batcher_;  // nothing without rows
  Configuration configuration_;           // of the sentence that is being added
  task::Batch batch_;
};

}  // namespace keel::models
