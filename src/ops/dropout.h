// Dropout (Srivastava et al. 2014, inverted form):  y = keep ? x / (1 - p) : 0.
//
//   x (...) floating   step () i32, the training step   y like x
// Element e is kept when Philox(seed, stream, step).uniform(e) >= p, so the mask is the same on
// every backend and for every thread count, and the backward draws it again instead of saving it.
// backward (Exact for the drawn mask): dx = keep ? dy / (1 - p) : 0.
// errors: p outside [0, 1).      in place: y over x, dx over dy.
#pragma once

#include "src/graph/graph.h"

namespace keel {

struct DropoutAttrs {
  double p = 0;
  std::int64_t seed = 0, stream = 0;
  static constexpr auto fields() {
    return std::tuple{field("p", &DropoutAttrs::p), field("seed", &DropoutAttrs::seed),
                      field("stream", &DropoutAttrs::stream)};
  }
};

extern const OpInfo kDropout;
extern const OpInfo kDropoutBackward;  // (dy, step) -> dx

namespace ops {

// The stream is the hash of the node's name, so every dropout of a model draws its own mask.
Value dropout(Graph& g, Value x, Value step, double p, std::int64_t seed);

}  // namespace ops
}  // namespace keel
