// Numbered pairs of sentences as batches to train on or to measure.
#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "frontend/data/data_loader.h"
#include "frontend/task/decoder.h"
#include "models/translation/pair_batch.h"

namespace keel::models {

using NumberedPairs = std::vector<NumberedPair>;

// A row is a pair, in data::PairBatches; its items are the target's tokens, kEnd among them.
class PairRows final : public data::Dataset {
 public:
  using MakeDecoder = std::function<std::unique_ptr<task::Decoder>()>;
  PairRows(data::SplitNotes notes, NumberedPairs pairs, MakeDecoder decoder = nullptr)
      : Dataset(std::move(notes)), pairs_(std::move(pairs)), decoder_(std::move(decoder)) {}

  std::unique_ptr<data::BatchSampler> plan(const task::StreamOptions& options) const override;
  std::vector<task::Input> inputs(const task::Sizes& sizes) const override {
    return pair_inputs(sizes);
  }
  void put(task::Batch& batch, const data::RowVisit& visit) const override {
    put_pair(batch, static_cast<std::size_t>(visit.place), pair(visit.row));
  }
  double items(std::int64_t row) const override { return double(pair(row).target.size()); }
  std::shared_ptr<task::Decoder> decoder(std::int64_t) const override {
    return decoder_ ? decoder_() : nullptr;
  }

 private:
  const NumberedPair& pair(std::int64_t row) const { return pairs_[static_cast<std::size_t>(row)]; }

  NumberedPairs pairs_;
  MakeDecoder decoder_;
};

}  // namespace keel::models
