// Plans batches of a fixed number of rows that have similar lengths.
#pragma once

#include <functional>

#include "frontend/data/batch_sampler.h"

namespace keel::data {

struct RowBatchOptions {
  std::int64_t batch = 128;
  std::optional<std::uint64_t> shuffle = std::nullopt;  // the seed, in training
  std::int64_t group = 0;  // in evaluation: rows that are sorted together; 0: all
};

// The lengths of rows. Both functions are pure; a row's length may differ between epochs.
struct RowLengths {
  // The key that rows are sorted by.
  std::function<std::int64_t(std::uint32_t epoch, std::int64_t row)> order;
  // The lengths that a row has to be padded to, one for each Sizes after the first; a batch
  // takes the largest of its rows for each. Absent: there are no such sizes.
  std::function<Sizes(std::uint32_t epoch, std::int64_t row)> padded = nullptr;
  // Every value that each of these lengths may have, the largest first.
  std::vector<std::vector<std::int64_t>> all = {};
};

// The plan of an epoch in training:
//   order  the permutation of (seed, "data.order", epoch), without the rows after the last whole
//          batch, which are other ones every epoch
//   cut    all of it is sorted by length, where rows of equal length keep that order, and cut
//   order  of the batches: the permutation of (seed, "data.batches", epoch)
// Without a seed rows come group by group in their own order, where each group is sorted by length
// and cut; the last batch of a group may have fewer rows, and is filled up with padding.
class RowBatches final : public BatchSampler {
 public:
  // Throws Error{kUsage} for no rows, a batch below 1 and, in training, one larger than all rows.
  RowBatches(std::int64_t rows, RowLengths lengths, const RowBatchOptions& options);

  std::int64_t steps(std::uint32_t = 0) override { return std::ssize(cuts_); }
  // Places of every batch: in training options.batch, else no more than the largest group.
  std::int64_t capacity() const;
  // The capacity with every combination of lengths; some of them may never come.
  std::vector<Sizes> shapes() const override;
  std::int64_t skipped() const override { return options_.shuffle ? rows() % options_.batch : 0; }

 private:
  void plan(std::uint32_t epoch, Epoch& planned) const override;
  Sizes lengths_of(std::span<const std::int64_t> rows, std::uint32_t epoch) const override;
  std::int64_t capacity(std::int64_t, const Sizes&) const override { return capacity(); }
  std::int64_t group() const { return options_.group > 0 ? options_.group : rows(); }
  void cut(std::int64_t first, std::int64_t end);

  RowLengths lengths_;
  RowBatchOptions options_;
  std::vector<Cut> cuts_;  // of every epoch, by length
};

}  // namespace keel::data
