// What one run of a program is fed with, and where batches come from.
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

// What the shapes of a batch depend on, in an order that the network defines: {rows} or
// {rows, length}. The first is always the number of rows, rows of padding included.
using Sizes = std::vector<std::int64_t>;

// An input of a network, for a batch of certain sizes.
struct Input {
  std::string name;
  TensorType type;
  double padding = 0;  // what stands where a batch has no row, and after the end of one
};

// A network with carries (frontend/nn/carry.h) has an input that tells which rows begin anew, and
// do not go on from the batch before: u8 (rows), 1 in those and in rows of padding.
struct Batch {
  Sizes sizes;
  std::vector<Tensor> values;      // in the order of Network::inputs(sizes)
  std::vector<std::int64_t> rows;  // their numbers in the split, in order; -1 for a row of padding
  double items = 0;                // by what its summed loss is divided: rows, or tokens
  std::string network = {};        // of Network::build_search; empty: its own
};

// What a metric is formed of.
struct Ratio {
  double sum = 0, count = 0;
};

// An answer among others to the same question.
struct RankedAnswer {
  std::string text;
  double score = 0;            // by which answers are ranked: the larger, the better
  double log_probability = 0;  // what the network gives to the answer as a whole
};

// What is found out with a network batch by batch, the next batch depending on what the network
// said of those before: a sentence's tree, its translation, an answer. It asks, somebody else runs
// the network.
class Decoder {
 public:
  virtual ~Decoder() = default;

  // How many answers there will be.
  virtual std::int64_t size() const = 0;
  // The batch that the network has to see next, valid until the next call; null: all is found.
  virtual const Batch* next() = 0;
  // What the network says of that batch: Outputs::predictions, by their names.
  virtual void take(const std::map<std::string, Tensor>& predictions) = 0;
  // When all is found: the answers in words, in order.
  virtual std::vector<std::string> answers() const = 0;
  // Whether an answer is the content of a file, a picture say, and no line of text.
  virtual bool answers_are_files() const { return false; }
  // When all is found: what the metrics are formed of that no graph counts, by their names.
  virtual std::map<std::string, Ratio> ratios() const { return {}; }
  // When all is found: up to so many answers to each question, the best first, where a search has
  // ranked some; otherwise nothing.
  virtual std::vector<std::vector<RankedAnswer>> ranked(std::int64_t /*most*/) const { return {}; }
  // When all is found: what is to be said of the answers besides, as names and texts for people.
  virtual std::vector<std::pair<std::string, std::string>> details() const { return {}; }
};

// Rows that a stream never gives.
struct LeftOut {
  std::int64_t rows = 0;
  std::string why;
};

// The batches of one split. Everything is a pure function of (epoch, step) and of what the stream
// was made with, so the pair says where a run stands and a resumed run needs nothing else.
class Stream {
 public:
  virtual ~Stream() = default;

  // For people: "data/mnist/t10k-images-idx3-ubyte.gz".
  virtual const std::string& source() const = 0;
  // Rows of the split. Batch::rows has numbers below it, each once an epoch but for those left out.
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
  // The sizes that may come from at(), the largest first.
  virtual std::vector<Sizes> shapes() const = 0;
  // What an epoch leaves out; nothing in evaluation.
  virtual std::vector<LeftOut> left_out() const { return {}; }
  // Finds answers for all that the split holds; null: a task that has nothing to find.
  virtual std::unique_ptr<Decoder> decoder() const { return nullptr; }
};

enum class Split { kTrain, kValid, kTest };

struct StreamOptions {
  std::int64_t batch = 256;  // rows or, of a task that counts its batches in tokens, tokens
  // The seed of a new order every epoch, in whole batches where a task has fixed rows; without it
  // rows are in order and all of them come.
  std::optional<std::uint64_t> shuffle = std::nullopt;
};

// The data of a task. What a split reads from is opened when its first stream is made: nothing of
// the test set is looked at while training goes on.
class Splits {
 public:
  virtual ~Splits() = default;
  virtual std::unique_ptr<Stream> stream(Split split, const StreamOptions& options) const = 0;
};

}  // namespace keel::task
