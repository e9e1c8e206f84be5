// Where a layer is applied: a network may apply one layer at many places.
#pragma once

#include "src/graph/node.h"

namespace keel::nn {

struct Site {
  std::int64_t t = 0;  // the time step; 0 in a network that is not recurrent
  // u8, of the shape of x but its last axis, or absent: 0 for rows of x that are padding. Norms
  // over the batch and over time leave them out of their statistics, other layers do not look at
  // it.
  Value mask = {};
};

}  // namespace keel::nn
