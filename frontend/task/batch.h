// What one run of a program is fed with, and where batches come from.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/core/tensor.h"

namespace keel::task {

// What the shapes of a batch depend on, in an order that the model defines: {rows} or
// {rows, length}. The first is always the number of rows, rows of padding included.
using Sizes = std::vector<std::int64_t>;

struct Batch {
  Sizes sizes;
  std::vector<Tensor> values;      // in the order of Model::inputs(sizes)
  std::vector<std::int64_t> rows;  // their numbers in the split, in order; -1 for a row of padding
  double items = 0;                // by what its summed loss is divided: rows, or tokens
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

  // For people: "MNIST test, data/mnist".
  virtual const std::string& source() const = 0;
  // Rows of the split. Batch::rows has numbers below it, each once an epoch but for those left out.
  virtual std::int64_t rows() const = 0;
  // Batches in an epoch, at least 1.
  virtual std::int64_t steps(std::uint32_t epoch) = 0;
  // Batch::items of a batch, without making it.
  virtual double items(std::uint32_t epoch, std::int64_t step) = 0;
  // Batch step < steps(epoch), valid until the next call.
  virtual const Batch& at(std::uint32_t epoch, std::int64_t step) = 0;
  // The sizes that may come, the largest first.
  virtual std::vector<Sizes> shapes() const = 0;
  // What an epoch leaves out; nothing in evaluation.
  virtual std::vector<LeftOut> left_out() const { return {}; }
};

}  // namespace keel::task
