// Mini-batches: which rows, in which order, and copying them to where a network reads them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "src/core/tensor.h"

namespace keel::data {

struct BatchOptions {
  std::int64_t batch = 0;  // rows in a batch
  bool shuffle = true;
  bool keep_partial = false;  // whether the rows left over make a last, smaller batch
  std::uint64_t seed = 0;
};

// The order of an epoch is a pure function of (rows, seed, epoch), so the pair (epoch, step) says
// where a run stands and a resumed run needs nothing else.
class Batcher {
 public:
  // Throws Error{kUsage} for batch < 1, rows < 1 or rows >= 2^32, and for a batch larger than
  // `rows` unless keep_partial, for it would leave no batch at all.
  Batcher(std::int64_t rows, const BatchOptions& options);

  // Batches in an epoch.
  std::int64_t steps() const { return steps_; }

  // Row numbers of batch `step` < steps() of an epoch, valid until another epoch is asked for.
  // Without shuffling they ascend. Allocates nothing.
  std::span<const std::int64_t> rows(std::uint32_t epoch, std::int64_t step);

 private:
  void permute(std::uint32_t epoch);

  BatchOptions options_;
  std::int64_t steps_;
  std::int64_t epoch_ = -1;  // the one `order_` holds
  std::vector<std::int64_t> order_;
};

// out = the given rows of a column, one after the other, as bytes of the column's element type.
// Both gathers throw Error{kUsage} for a row that is not there or an `out` of another size.
void gather(const Tensor& column, std::span<const std::int64_t> rows, std::span<std::byte> out);

// out = x * scale + offset for the elements x of the given rows of a u8 column.
struct Affine {
  float scale = 1, offset = 0;
};
void gather(const Tensor& column, std::span<const std::int64_t> rows, Affine affine,
            std::span<float> out);

}  // namespace keel::data
