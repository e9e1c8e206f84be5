// Numbered pairs of sentences as batches to train on or to measure.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "frontend/data/pair_batches.h"
#include "frontend/data/text_stream.h"
#include "models/translation/pair_batch.h"

namespace keel::models {

using NumberedPairs = std::vector<NumberedPair>;

// The batches that PairBatches plans, a row being a pair. items is the number of target tokens,
// kEnd among them, by which a loss that is summed over them is divided.
class PairStream final : public task::Stream {
 public:
  // Throws Error{kUsage} as PairBatches, and for a pair with a side that is empty.
  PairStream(data::StreamNotes notes, std::shared_ptr<const NumberedPairs> pairs,
             const data::PairBatchOptions& options);

  const std::string& source() const override { return notes_.source; }
  std::int64_t rows() const override { return std::ssize(*pairs_); }
  std::int64_t steps(std::uint32_t) override { return batches_.steps(); }
  double items(std::uint32_t epoch, std::int64_t step) override;
  const task::Batch& at(std::uint32_t epoch, std::int64_t step) override;
  const task::Batch& pick(std::span<const std::int64_t> rows) override;
  std::vector<task::Sizes> shapes() const override;
  std::vector<task::LeftOut> left_out() const override { return notes_.left_out; }

  std::unique_ptr<task::Decoder> decoder() const override {
    return decoder_ ? decoder_() : nullptr;
  }
  // What decoder() is to give.
  void set_decoder(std::function<std::unique_ptr<task::Decoder>()> make) {
    decoder_ = std::move(make);
  }

  // The share of positions that hold no token.
  double padding() const { return batches_.padding(); }

 private:
  const NumberedPair& pair(std::int64_t row) const {
    return (*pairs_)[static_cast<std::size_t>(row)];
  }
  const task::Batch& make(const data::PairBatch& planned);

  data::StreamNotes notes_;
  std::shared_ptr<const NumberedPairs> pairs_;
  data::PairBatchOptions options_;
  data::PairBatches batches_;
  task::Batch batch_;
  std::function<std::unique_ptr<task::Decoder>()> decoder_;
};

}  // namespace keel::models
