// The batch that one run of a program is fed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/core/tensor.h"

namespace keel::data {

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

}  // namespace keel::data
