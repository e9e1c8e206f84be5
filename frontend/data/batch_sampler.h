// Plans of batches: the rows of each batch, and its shape.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "frontend/data/stream.h"

namespace keel::data {

// The shape of a batch, and the rows that fill its first places; the other places are padding.
struct PlannedBatch {
  Sizes sizes;  // {places, lengths that hold each of its rows}
  std::span<const std::int64_t> rows;

  std::int64_t capacity() const { return sizes[0]; }
};

// The plan of an epoch is a pure function of the epoch and of the BatchSampler's own data.
class BatchSampler {
 public:
  virtual ~BatchSampler() = default;

  std::int64_t rows() const { return rows_; }
  // Batches of an epoch, at least 1.
  virtual std::int64_t steps(std::uint32_t epoch) { return std::ssize(epoch_of(epoch).cuts); }
  // Batch step < steps(epoch). Its rows stay valid until the caller asks for an epoch other than
  // this one and the next. Throws Error{kUsage} for a step that does not exist.
  PlannedBatch at(std::uint32_t epoch, std::int64_t step);
  // The same into an object that was used before: allocates nothing if batches have no lengths.
  void at(std::uint32_t epoch, std::int64_t step, PlannedBatch& planned);
  // Only the rows of that batch.
  std::span<const std::int64_t> rows_at(std::uint32_t epoch, std::int64_t step);
  // One batch of these rows, with their lengths in epoch 0, in that order and without padding.
  // Throws Error{kUsage} for a row that does not exist.
  PlannedBatch pick(std::span<const std::int64_t> rows) const;
  // Every shape that at() may give, the largest first.
  virtual std::vector<Sizes> shapes() const = 0;
  // The number of rows that are left out because they fill no batch; these are different rows in
  // every epoch.
  virtual std::int64_t skipped() const { return 0; }

 protected:
  // `varies` says whether epochs differ from each other.
  BatchSampler(std::int64_t rows, bool varies) : rows_(rows), varies_(varies) {}

  struct Cut {
    std::size_t first = 0, count = 0;  // of Epoch::order
  };
  struct Epoch {
    std::vector<std::int64_t> order;
    std::vector<Cut> cuts;  // the batches, in the order in which they come
  };
  const Epoch& epoch_of(std::uint32_t epoch);
  // Plans an epoch into an object that held another one.
  virtual void plan(std::uint32_t epoch, Epoch& planned) const = 0;
  // The lengths that these rows are padded to in an epoch: Sizes after the first.
  virtual Sizes lengths_of(std::span<const std::int64_t> rows, std::uint32_t epoch) const = 0;
  // The places of a batch of `count` rows that are padded to these lengths.
  virtual std::int64_t capacity(std::int64_t count, const Sizes& lengths) const = 0;

 private:
  std::int64_t rows_;
  bool varies_;
  // The latest even and the latest odd epoch: a stream that reads ahead asks for an epoch and for
  // the next one by turns.
  struct Kept {
    std::optional<std::uint32_t> epoch;
    Epoch planned;
  };
  std::array<Kept, 2> kept_;
};

// {places, lengths...}
Sizes with_lengths(std::int64_t places, const Sizes& lengths);

}  // namespace keel::data
