// Batches of a fixed number of rows, of any kind.
#pragma once

#include "frontend/data/batch_sampler.h"

namespace keel::data {

// Sizes are {rows}. A shuffled epoch is the permutation of (seed, "data.order", epoch) without the
// rows after the last whole batch. Without a seed rows ascend, and the last batch may be smaller; a
// split without rows, which evaluation allows, is one batch of padding.
class FixedBatches final : public BatchSampler {
 public:
  // Throws Error{kUsage} for a batch below 1, for 2^32 rows or more, and if shuffled for a batch
  // larger than the number of rows.
  FixedBatches(std::int64_t rows, const StreamOptions& options);

  std::int64_t steps(std::uint32_t) override { return steps_; }
  std::vector<Sizes> shapes() const override;
  std::int64_t skipped() const override { return options_.shuffle ? rows() % options_.batch : 0; }

 private:
  void plan(std::uint32_t epoch, Epoch& planned) const override;
  Sizes lengths_of(std::span<const std::int64_t>, std::uint32_t) const override { return {}; }
  std::int64_t capacity(std::int64_t count, const Sizes&) const override {
    return count > 0 ? count : 1;
  }

  StreamOptions options_;
  std::int64_t steps_;
};

}  // namespace keel::data
