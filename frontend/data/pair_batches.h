// Plans batches of pairs of sentences, where the size of a batch is measured in tokens.
#pragma once

#include "frontend/data/batch_sampler.h"

namespace keel::data {

// The tokens of each side of a pair, including marks of beginning and end.
struct PairLength {
  std::int64_t source = 0, target = 0;
  std::int64_t longer() const { return source > target ? source : target; }
  friend bool operator==(const PairLength&, const PairLength&) = default;
};

struct PairBatchOptions {
  std::int64_t max_tokens = 4096;  // positions of the longer side, including padding
  std::int64_t multiple = 8;       // lengths are rounded up to a multiple of it (bucket_of)
  std::int64_t row_multiple = 8;   // the rows of a larger batch are a multiple of it
  bool sorted = false;             // for evaluation: batches in order, no order is drawn
  std::uint64_t seed = 0;
};

// fairseq's batches, in few different shapes. Sizes are {rows, source length, target length}. The
// plan of an epoch:
//   order   by the source's length, then by the target's; among equal pairs the permutation of
//           (seed, "data.order", epoch), or their own order if `sorted`
//   cut     rows are added while all of them, padded to the bucket of the longest on either side,
//           stay within max_tokens; when one does not fit, the first rows become a batch: as many
//           as are a multiple of row_multiple, or all if they are fewer; the others wait
//   order   of the batches: the permutation of (seed, "data.batches", epoch)
// Both sides of a batch are padded to the buckets of their longest. A batch has places for as many
// rows as fit its longer side, rounded down to a multiple of row_multiple unless fewer than that
// fit; the last batch may hold more. All epochs have the same shapes. A pair longer than max_tokens
// is a batch by itself. No row is dropped.
class PairBatches final : public BatchSampler {
 public:
  // Throws Error{kUsage} for options or a length below 1, and for no rows.
  PairBatches(std::vector<PairLength> lengths, const PairBatchOptions& options);

  std::int64_t steps(std::uint32_t = 0) override { return std::ssize(cuts_); }
  // The shapes with most positions of both sides come first.
  std::vector<Sizes> shapes() const override;

  // The share of positions, of both sides together, that hold no token.
  double padding() const;

 private:
  void plan(std::uint32_t epoch, Epoch& planned) const override;
  Sizes lengths_of(std::span<const std::int64_t> rows, std::uint32_t) const override;
  std::int64_t capacity(std::int64_t count, const Sizes& lengths) const override;
  std::vector<std::int64_t> order_of(std::uint32_t epoch) const;
  void cut();
  PairLength bucket_over(std::span<const std::int64_t> rows) const;
  const PairLength& length_of(std::int64_t row) const {
    return lengths_[static_cast<std::size_t>(row)];
  }

  std::vector<PairLength> lengths_;
  PairBatchOptions options_;
  std::vector<Cut> cuts_;      // of every epoch, by length
  std::vector<Sizes> shapes_;  // of the cuts
};

}  // namespace keel::data
