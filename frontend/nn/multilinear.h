// The layer of multi-linear attention (Ma et al. 2019), which looks at products of keys and values
// in place of probabilities: src/ops/multilinear_attention.h has the formula.
#pragma once

#include <string>

#include "frontend/nn/fan_init.h"
#include "frontend/nn/net.h"

namespace keel::nn {

struct MultilinearOptions {
  std::int64_t rank = 40;       // of queries, keys and values: the width of the one head
  std::int64_t cores = 1;       // vectors g, whose mean the layer takes
  std::int64_t positions = 32;  // the most of a sequence
  // Without the mask, a position reads those after it.
  bool causal = true;
  FanInit init = [](std::int64_t) { return normal(0.02); };
};

// The vectors u and w, which the layers of a network share: parameters "<name>/content" and
// "<name>/position" (rank).
struct MultilinearBiases {
  Value content, position;

  MultilinearBiases(const Net& net, const std::string& name, const MultilinearOptions& options);
};

// x (batch, n, width), n <= positions. The layer has the projections "<name>/q", "k" and "v"
// (width, rank), "<name>/positions" (width, rank) of the sines of the distance to the last of
// `positions`, "<name>/core" (cores, rank), at first 1 / rank, and "<name>/out" (positions
// positions, width), row j positions + k for the pair (j, k); no biases.
Value multilinear_attention(Net& net, const std::string& name, Value x,
                            const MultilinearOptions& options, const MultilinearBiases& biases);

}  // namespace keel::nn
