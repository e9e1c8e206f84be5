// The batch that one run of a program is fed, and the streams that batches come from.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "src/core/tensor.h"

namespace keel::task {

// The sizes that the shapes of a batch depend on, in an order that the network defines: {rows} or
// {rows, length}. The first is always the number of rows, rows of padding included.
using Sizes = std::vector<std::int64_t>;

// An input of a network, for a batch of certain sizes.
struct Input {
  std::string name;
  TensorType type;
  double padding = 0;  // fills rows of padding, and each row after its end
};

// A network with carries (frontend/nn/carry.h) has an input that marks the rows that begin a
// sequence and do not continue a row of the batch before: u8 (rows), 1 in those and in rows of
// padding.
struct Batch {
  Sizes sizes;
  std::vector<Tensor> values;      // in the order of Network::inputs(sizes)
  std::vector<std::int64_t> rows;  // row numbers in the split, in order; -1 for a row of padding
  double items = 0;                // the divisor of its summed loss: rows, or tokens
  std::int64_t first_row = 0;      // of a shard: the rows of its update that come before it
  std::string network = {};        // one of Network::build_search; empty: Network::build
};

// The sum and the count that a metric is formed of.
struct Ratio {
  double sum = 0, count = 0;
};

// One of several answers to the same question.
struct RankedAnswer {
  std::string text;
  double score = 0;            // answers are ranked by it: the larger, the better
  double log_probability = 0;  // the network's, of the answer as a whole
};

// All answers that a part of a shared search found to question `question`, the best first.
struct FoundAnswers {
  std::int64_t question = 0;
  std::vector<RankedAnswer> answers = {};
};

// A Decoder runs an iterative search, for instance for a sentence's tree, its translation or an
// answer. Each batch that it asks for depends on the network's predictions for earlier ones; the
// caller runs the network.
class Decoder {
 public:
  virtual ~Decoder() = default;

  // The number of answers that there will be.
  virtual std::int64_t size() const = 0;
  // The batch that the network has to run next, valid until the next call; null: all is found.
  virtual const Batch* next() = 0;
  // Takes the network's predictions for that batch: Outputs::predictions, by their names.
  virtual void take(const std::map<std::string, Tensor>& predictions) = 0;
  // After the search: the answers in words, in order.
  virtual std::vector<std::string> answers() const = 0;
  // Whether an answer is the content of a file, such as a picture, and not a line of text.
  virtual bool answers_are_files() const { return false; }
  // After the search: sums and counts of the metrics that no graph counts, by their names.
  virtual std::map<std::string, Ratio> ratios() const { return {}; }
  // After the search: up to `most` answers to each question, the best first, if the search has
  // ranked any; otherwise nothing.
  virtual std::vector<std::vector<RankedAnswer>> ranked(std::int64_t /*most*/) const { return {}; }
  // After the search: further facts about the answers, as names and texts for people.
  virtual std::vector<std::pair<std::string, std::string>> details() const { return {}; }

  // Several processes can share a search out. Before the first next(): from now on this decoder
  // looks for part `part` of `parts` of the answers, and finds for it to the bit what it would have
  // found alone. Returns false, and changes nothing, if the search cannot be shared out.
  virtual bool take_part(std::int64_t /*part*/, std::int64_t /*parts*/) { return false; }
  // After the search of a part: what it found, and the taking of what another part has found. When
  // every part has been taken, the functions above give the answers of the whole.
  virtual std::vector<FoundAnswers> found() const { return {}; }
  virtual void take_found(const FoundAnswers& /*answers*/) {}
};

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
  // A decoder that finds answers for the whole split; null: the task has none to find.
  virtual std::unique_ptr<Decoder> decoder() const { return nullptr; }
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

}  // namespace keel::task
