// Dropout (Srivastava et al. 2014, inverted form):  y = keep ? x / (1 - p) : 0.
//
//   x (rows, ...) floating, axis 0 being the rows of the batch; a scalar is one row
//   step, first_row () i32, see RandomKey   y like x
// Element e of row r is kept when Philox(seed, stream, step).row_uniform(first_row + r, e) >= p.
// The mask is therefore the same on every backend, for every thread count and for every split of
// the update's rows. The backward draws the mask again instead of saving it.
// backward (Exact for the sampled mask): dx = keep ? dy / (1 - p) : 0.
// errors: p outside [0, 1); rows of 2^34 elements or more.      in place: y over x, dx over dy.
#pragma once

#include "src/ops/random_key.h"

namespace keel {

struct DropoutAttrs {
  double p = 0;
  std::int64_t seed = 0, stream = 0;
  static constexpr auto fields() {
    return std::tuple{field("p", &DropoutAttrs::p), field("seed", &DropoutAttrs::seed),
                      field("stream", &DropoutAttrs::stream)};
  }
};

// The inputs of both ops have these places; the backward has dy for x.
struct DropoutInput {
  enum Place : int { kX, kStep, kFirstRow };
};

extern const OpInfo kDropout;
extern const OpInfo kDropoutBackward;  // (dy, step, first_row) -> dx

namespace ops {

// The stream is the hash of the node's name, so every dropout of a model draws its own mask.
Value dropout(Graph& g, Value x, const RandomKey& key, double p, std::int64_t seed);

}  // namespace ops
}  // namespace keel
