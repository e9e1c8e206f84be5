// The place where a layer is applied: a network may apply one layer at many places.
#pragma once

#include "src/graph/node.h"

namespace keel::nn {

struct LayerCall {
  std::int64_t t = 0;  // the time step; 0 in a network that is not recurrent
  // u8, of the shape of x without its last axis, or absent: 0 for rows of x that are padding.
  // Norms over the batch and over time leave these out of their statistics; other layers ignore
  // the mask.
  Value mask = {};
};

}  // namespace keel::nn
