// The one stream of all tasks: it puts rows into the batches of a plan.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/data/dataset.h"

namespace keel::data {

class DataLoader final : public Stream {
 public:
  // Throws as Dataset::plan.
  DataLoader(std::shared_ptr<const Dataset> rows, const StreamOptions& options);

  const std::string& source() const override { return rows_->source(); }
  std::int64_t rows() const override { return plan_->rows(); }
  std::int64_t steps(std::uint32_t epoch) override {
    return plan_->steps(epoch) * options_.shard_range.count();
  }
  double items(std::uint32_t epoch, std::int64_t step) override;
  const Batch& at(std::uint32_t epoch, std::int64_t step) override;
  const Batch& pick(std::span<const std::int64_t> rows) override;
  std::vector<Sizes> shapes() const override;
  std::vector<Skipped> skipped() const override;
  std::int64_t number(std::int64_t row) const override { return rows_->number(row); }
  std::shared_ptr<task::Decoder> decoder() const override { return rows_->decoder(options_.batch); }

 private:
  const Batch& make(const PlannedBatch& planned, std::uint32_t epoch);
  const Batch& shard_at(std::uint32_t epoch, std::int64_t step);

  std::shared_ptr<const Dataset> rows_;
  StreamOptions options_;
  std::unique_ptr<BatchSampler> plan_;
  // The last batch that was given. All of its memory is used again as long as it fits.
  PlannedBatch planned_;
  std::vector<Input> inputs_;
  Batch batch_;
};

// A stream of these rows. A shuffled one, for training, makes its next batch in a thread of its own
// while the current one is used.
std::unique_ptr<Stream> stream_of_rows(std::shared_ptr<const Dataset> rows,
                                       const StreamOptions& options);

// "train", "valid" or "test".
std::string_view name_of(Split split);

// Makes the rows of a split when its first stream is asked for, and keeps them.
class DatasetSplits : public Splits {
 public:
  using Make = std::function<std::shared_ptr<const Dataset>(Split)>;
  explicit DatasetSplits(Make make) : make_(std::move(make)) {}

  std::unique_ptr<Stream> stream(Split split, const StreamOptions& options) const override {
    return stream_of_rows(rows(split), options);
  }
  const std::shared_ptr<const Dataset>& rows(Split split) const;

 private:
  Make make_;
  mutable std::shared_ptr<const Dataset> rows_[3];
};

}  // namespace keel::data
