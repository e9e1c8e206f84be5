// Which rows go into which batch, where a batch has a fixed number of rows, of like lengths.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace keel::data {

struct RowBatchOptions {
  std::int64_t batch = 128;
  std::optional<std::uint64_t> shuffle = std::nullopt;  // the seed, in training
  std::int64_t group = 0;  // in evaluation: rows that are sorted together; 0: all
};

// By what a row is sorted in an epoch: its length.
using RowLength = std::function<std::int64_t(std::uint32_t epoch, std::int64_t row)>;

// The plan of an epoch is a pure function of (lengths, options, epoch). In training:
//   order  the permutation of (seed, "data.order", epoch), without the rows behind the last whole
//          batch, which are other ones every epoch
//   cut    all of it is sorted by length, rows of equal length keeping that order, and cut
//   order  of the batches: the permutation of (seed, "data.batches", epoch)
// Without a seed rows come group by group in their own order, each group sorted by length and cut;
// the last batch of a group may have fewer rows.
class RowBatches {
 public:
  // Throws Error{kUsage} for no rows, a batch below 1 and, in training, one of more than all rows.
  RowBatches(std::int64_t rows, RowLength length, const RowBatchOptions& options);

  std::int64_t rows() const { return rows_; }
  std::int64_t steps() const { return std::ssize(cuts_); }  // batches of every epoch
  // Rows of a batch: so many, or fewer. In training it is the batch; else it is no more than the
  // largest group.
  std::int64_t capacity() const;
  // Rows that an epoch of training leaves out.
  std::int64_t left_out() const { return options_.shuffle ? rows_ % options_.batch : 0; }
  // Batch step < steps(), shorter rows first. Valid until an epoch is asked for that is neither
  // this one nor the next. Throws Error{kUsage} for a step that is not there.
  std::span<const std::int64_t> at(std::uint32_t epoch, std::int64_t step);

 private:
  struct Cut {
    std::size_t first = 0, count = 0;  // of an epoch's order
  };
  struct Plan {
    std::uint32_t epoch = 0;
    std::vector<std::int64_t> order, batches;
  };

  const Plan& plan(std::uint32_t epoch);
  Plan make_plan(std::uint32_t epoch) const;
  std::int64_t group() const { return options_.group > 0 ? options_.group : rows_; }
  void cut(std::int64_t first, std::int64_t end);

  std::int64_t rows_;
  RowLength length_;
  RowBatchOptions options_;
  std::vector<Cut> cuts_;
  std::array<std::optional<Plan>, 2> plans_;  // of the latest even and odd epoch
};

}  // namespace keel::data
