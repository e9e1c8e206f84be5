// The streams that batches come from, and the splits that streams are of.
#pragma once

#include <memory>
#include <optional>
#include <span>

#include "frontend/data/batch.h"

namespace keel::task {
class Decoder;  // streams hand it on; what it is, only tasks and their callers know
}

namespace keel::data {

// Rows, or parts of rows, that a stream never gives.
struct Skipped {
  std::int64_t rows = 0;
  std::string why;
  std::string unit = "rows";  // of the number
};

// The batches of one split. Everything is a pure function of (epoch, step) and of what the stream
// was made with, so the pair says where a run stands and a resumed run needs nothing else.
class Stream {
 public:
  virtual ~Stream() = default;

  // For people: "data/mnist/t10k-images-idx3-ubyte.gz".
  virtual const std::string& source() const = 0;
  // Rows of the split. Row numbers are below that, and each comes once an epoch unless left out.
  virtual std::int64_t rows() const = 0;
  // Batches in an epoch, at least 1.
  virtual std::int64_t steps(std::uint32_t epoch) = 0;
  // Batch::items of a batch, without making it.
  virtual double items(std::uint32_t epoch, std::int64_t step) = 0;
  // Batch step < steps(epoch), valid until the next call.
  virtual const Batch& at(std::uint32_t epoch, std::int64_t step) = 0;
  // One batch of the given rows in that order, valid until the next call: for looking at single
  // rows, not for training.
  virtual const Batch& pick(std::span<const std::int64_t> rows) = 0;
  // The sizes that at() may give, the largest first.
  virtual std::vector<Sizes> shapes() const = 0;
  // The rows of the source that an epoch, or an evaluation, leaves out.
  virtual std::vector<Skipped> skipped() const { return {}; }
  // The number that a row has in its source, from 0 on: another one than in the split where the
  // split was drawn from the source.
  virtual std::int64_t number(std::int64_t row) const { return row; }
  // A decoder that finds answers for the whole split; null: the task has none to find. Nobody else
  // has a share of it: a shared pointer deletes what is not known here.
  virtual std::shared_ptr<task::Decoder> decoder() const { return nullptr; }
};

enum class Split { kTrain, kValid, kTest };

// The shards of batches that a stream gives. Every batch is cut into `shards` contiguous pieces of
// its rows, and an update has `accumulate` batches, in an epoch's last update perhaps fewer. The
// stream gives shard `first` of all batches of an update, then the next shard of them, up to and
// without shard `end`; or, `by_batch`, these shards of the first batch, then of the next. Each
// counts as a batch; one without a row has no values.
struct ShardRange {
  std::int64_t shards = 1, first = 0, end = 1;
  std::int64_t accumulate = 1;
  bool by_batch = false;

  bool is_whole() const { return shards == 1; }
  std::int64_t count() const { return end - first; }
};

struct StreamOptions {
  std::int64_t batch = 256;  // rows, or tokens where the task counts its batches in tokens
  // The seed of a new order every epoch, an order of whole batches where a task has fixed rows.
  // Without a seed rows come in order, and all of them come.
  std::optional<std::uint64_t> shuffle = std::nullopt;
  ShardRange shard_range = {};
};

// The data of a task. A split's source is opened when the first stream of that split is made:
// training reads nothing of the test set before it asks for such a stream.
class Splits {
 public:
  virtual ~Splits() = default;
  virtual std::unique_ptr<Stream> stream(Split split, const StreamOptions& options) const = 0;
};

}  // namespace keel::data
