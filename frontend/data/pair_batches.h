// Which pairs of sentences go into which batch, where a batch is measured in tokens.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace keel::data {

// Tokens of both sides of a pair, marks of beginning and end included.
struct PairLength {
  std::int64_t source = 0, target = 0;
  std::int64_t longer() const { return source > target ? source : target; }
  friend bool operator==(const PairLength&, const PairLength&) = default;
};

struct PairBatchOptions {
  std::int64_t max_tokens = 4096;  // positions of the longer side, those of padding included
  std::int64_t multiple = 8;       // lengths are rounded up to a multiple of it (bucket_of)
  std::int64_t row_multiple = 8;   // a batch of at least so many rows has a multiple of them
  bool sorted = false;             // for evaluation: batches in order, no order is drawn
  std::uint64_t seed = 0;
};

// The shape of a batch, and the rows that fill its first places; the rest is padding.
struct PairBatch {
  std::int64_t capacity = 0;  // rows, those of padding included
  PairLength length;          // of a row, padding included
  std::span<const std::int64_t> rows;
};

// The batches of fairseq in shapes that are few. The plan of an epoch is a pure function of
// (lengths, options, epoch):
//   order   by the source's length, then by the target's; among equal pairs the permutation of
//           (seed, "data.order", epoch), or their own order if `sorted`
//   cut     rows are added while all of them, padded to the bucket of the longest on either side,
//           stay within max_tokens; when one does not fit, so many leave as a batch as are a
//           multiple of row_multiple, or all if they are fewer than that, and the others stay
//   order   of the batches: the permutation of (seed, "data.batches", epoch)
// Both sides of a batch are padded to the buckets of their longest, and a shape has as many rows as
// fit its longer side, a multiple of row_multiple, or those of the last batch, which need be none.
// All epochs have the same shapes. A pair longer than max_tokens is a batch by
// itself. No row is dropped.
class PairBatches {
 public:
  // Throws Error{kUsage} for options or a length below 1, and for no rows.
  PairBatches(std::vector<PairLength> lengths, const PairBatchOptions& options);

  std::int64_t rows() const { return std::ssize(lengths_); }
  std::int64_t steps() const { return std::ssize(cuts_); }  // batches of every epoch
  // Batch step < steps(). Its rows are valid until an epoch is asked for that is neither this one
  // nor the next. Throws Error{kUsage} for a step that is not there.
  PairBatch at(std::uint32_t epoch, std::int64_t step);

  struct Shape {
    std::int64_t capacity = 0;
    PairLength length;
    friend bool operator==(const Shape&, const Shape&) = default;
  };
  // All that come, most positions first.
  std::vector<Shape> shapes() const;

  // The share of positions, both sides together, that hold no token.
  double padding() const;

 private:
  struct Cut {
    std::size_t first = 0, count = 0;  // of an epoch's order
    std::int64_t capacity = 0;
    PairLength length;
  };
  struct Plan {
    std::uint32_t epoch = 0;
    std::vector<std::int64_t> order, batches;
  };

  const Plan& plan(std::uint32_t epoch);
  Plan make_plan(std::uint32_t epoch) const;
  std::vector<std::int64_t> order_of(std::uint32_t epoch) const;
  void cut();
  PairLength bucket_over(std::span<const std::int64_t> rows) const;
  std::int64_t capacity(const PairLength& length) const;
  const PairLength& length_of(std::int64_t row) const {
    return lengths_[static_cast<std::size_t>(row)];
  }

  std::vector<PairLength> lengths_;
  PairBatchOptions options_;
  std::vector<Cut> cuts_;
  std::array<std::optional<Plan>, 2> plans_;  // of the latest even and odd epoch
};

}  // namespace keel::data
