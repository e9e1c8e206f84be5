// Softmax and its logarithm over the last axis.
//
//   softmax      y = exp(x - max) / sum exp(x - max)     dx = y (dy - sum(dy y))
//   log_softmax  y = x - max - log sum exp(x - max)      dx = dy - exp(y) sum(dy)
// x (..., width), width >= 1, floating; the shift by the row's maximum keeps exp finite.
// in place: y over x; dx over dy.
#pragma once

#include "src/graph/graph.h"

namespace keel {

// The inputs of both backwards have these places.
struct SoftmaxBackwardInput {
  enum Place : int { kDy, kY };
};

extern const OpInfo kSoftmax, kLogSoftmax;
extern const OpInfo kSoftmaxBackward, kLogSoftmaxBackward;  // (dy, y) -> dx

namespace ops {

Value softmax(Graph& g, Value x);
Value log_softmax(Graph& g, Value x);

}  // namespace ops
}  // namespace keel
