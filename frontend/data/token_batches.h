// Plans batches of sentences, where the size of a batch is measured in tokens.
#pragma once

#include "frontend/data/batch_sampler.h"

namespace keel::data {

struct TokenBatchOptions {
  std::int64_t max_tokens = 4096;  // positions of a batch, including padding
  std::int64_t pool = 50;          // this many batches of rows are sorted by length together
  std::int64_t multiple = 4;       // lengths are rounded up to a multiple of it (bucket_of)
  bool sorted = false;             // for evaluation: no order is drawn, short rows come first
  std::uint64_t seed = 0;
};

// The least length that a row of `length` tokens is padded to. Up to 64 it is the next multiple of
// `multiple`; beyond, it is on a grid with steps of a quarter, each rounded up to a multiple. With
// 4: 4, 8, ..., 64, 80, 100, 128, 160, 200, 252, ...
std::int64_t bucket_of(std::int64_t length, std::int64_t multiple);

// Sizes are {rows, length}. The plan of an epoch:
//   order  the permutation of (seed, "data.order", epoch); rows of equal length keep this order
//   pools  runs of the order that fill `pool` batches by their padded lengths, each sorted by
//          length; with `sorted` one pool of all rows, in their own order
//   cut    a batch is filled while its rows, padded to the bucket of the longest, fit max_tokens
//   order  of the batches: the permutation of (seed, "data.batches", epoch); ascending if `sorted`
// A batch whose longest row is in bucket L has max(1, max_tokens / L) rows, so that a bucket has
// one shape. A row longer than max_tokens is a batch by itself. No row is dropped.
class TokenBatches final : public BatchSampler {
 public:
  // Throws Error{kUsage} for options or a length below 1, and for no rows.
  TokenBatches(std::vector<std::int64_t> lengths, const TokenBatchOptions& options);

  // The shapes with most positions come first, among equal ones those with the longest rows.
  std::vector<Sizes> shapes() const override;

  // The share of an epoch's positions that hold no token.
  double padding(std::uint32_t epoch);

 private:
  void plan(std::uint32_t epoch, Epoch& planned) const override;
  Sizes lengths_of(std::span<const std::int64_t> rows, std::uint32_t) const override;
  std::int64_t capacity(std::int64_t, const Sizes& lengths) const override {
    return capacity(lengths[0]);
  }
  void cut_pool(Epoch& planned, std::size_t first, std::size_t end) const;
  std::size_t pool_end(const Epoch& planned, std::size_t first) const;
  std::int64_t length_of(std::int64_t row) const { return lengths_[static_cast<std::size_t>(row)]; }
  std::int64_t bucket(std::int64_t row) const {
    return bucket_of(length_of(row), options_.multiple);
  }
  std::int64_t capacity(std::int64_t length) const;

  std::vector<std::int64_t> lengths_;
  TokenBatchOptions options_;
};

}  // namespace keel::data
