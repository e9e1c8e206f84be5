// Which sentences go into which batch, where a batch is measured in tokens.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace keel::data {

struct TokenBatchOptions {
  std::int64_t max_tokens = 4096;  // positions of a batch, those of padding included
  std::int64_t pool = 50;          // as many batches of rows are sorted by length together
  std::int64_t multiple = 4;       // lengths are rounded up to a multiple of it (bucket_of)
  bool sorted = false;             // for evaluation: no order is drawn, short rows come first
  std::uint64_t seed = 0;
};

// The length that a row of `length` tokens is padded to, at the least: the next multiple of
// `multiple` up to 64, and from there on a grid whose steps are a quarter, each rounded up to a
// multiple. With 4: 4, 8, ..., 64, 80, 100, 128, 160, 200, 252, ...
std::int64_t bucket_of(std::int64_t length, std::int64_t multiple);

// The shape of a batch, and the rows that fill its first places; the rest is padding.
struct TokenBatch {
  std::int64_t capacity = 0;  // rows, those of padding included
  std::int64_t length = 0;    // tokens of a row, those of padding included
  std::span<const std::int64_t> rows;
};

// The plan of an epoch is a pure function of (lengths, options, epoch), so the pair (epoch, step)
// says where a run stands. It is made so:
//   order  the permutation of (seed, "data.order", epoch); rows of equal length keep this order
//   pools  runs of the order that fill `pool` batches by their padded lengths, each sorted by
//          length; with `sorted` one pool of all rows, in their own order
//   cut    a batch is filled while its rows, padded to the bucket of the longest, fit max_tokens
//   order  of the batches: the permutation of (seed, "data.batches", epoch); ascending if `sorted`
// A batch whose longest row is in bucket L has max(1, max_tokens / L) rows, so that a bucket has
// one shape. A row longer than max_tokens is a batch by itself. No row is dropped.
class TokenBatches {
 public:
  // Throws Error{kUsage} for options or a length below 1, and for no rows.
  TokenBatches(std::vector<std::int64_t> lengths, const TokenBatchOptions& options);

  std::int64_t rows() const { return static_cast<std::int64_t>(lengths_.size()); }
  // Batches of an epoch; it may differ a little from epoch to epoch.
  std::int64_t steps(std::uint32_t epoch) { return std::ssize(plan(epoch).cuts); }
  // Batch step < steps(epoch). Its rows are valid until an epoch is asked for that is neither this
  // one nor the next. Throws Error{kUsage} for a step that is not there.
  TokenBatch at(std::uint32_t epoch, std::int64_t step);

  struct Size {
    std::int64_t capacity = 0, length = 0;
    friend bool operator==(const Size&, const Size&) = default;
  };
  // All that may come in any epoch, most positions first and then the longest rows.
  std::vector<Size> sizes() const;

  // The share of an epoch's positions that hold no token.
  double padding(std::uint32_t epoch);

 private:
  struct Cut {
    std::size_t first = 0, count = 0;  // of Plan::order
    std::int64_t length = 0;
  };
  struct Plan {
    std::uint32_t epoch = 0;
    std::vector<std::int64_t> order;
    std::vector<Cut> cuts;
  };

  const Plan& plan(std::uint32_t epoch);
  Plan make_plan(std::uint32_t epoch) const;
  void cut_pool(Plan& plan, std::size_t first, std::size_t end) const;
  std::size_t pool_end(const Plan& plan, std::size_t first) const;
  std::int64_t length_of(std::int64_t row) const { return lengths_[static_cast<std::size_t>(row)]; }
  std::int64_t bucket(std::int64_t row) const {
    return bucket_of(length_of(row), options_.multiple);
  }
  std::int64_t capacity(std::int64_t length) const;

  std::vector<std::int64_t> lengths_;
  TokenBatchOptions options_;
  std::array<std::optional<Plan>, 2> plans_;  // of the latest even and odd epoch
};

}  // namespace keel::data
