// The feed-forward sublayer of Llama, "SwiGLU" (Shazeer 2020, "GLU Variants Improve Transformer").
#pragma once

#include <functional>
#include <string>

#include "frontend/nn/fan_init.h"
#include "frontend/nn/net.h"

namespace keel::nn {

struct GatedFeedForwardOptions {
  std::int64_t units = 512;
  double dropout = 0;  // of the units
  FanInit init = xavier();
  // Takes the result of the map "gate", "up" or "down", and returns what the layer goes on with.
  std::function<Value(const std::string& map, Value y)> after_map = nullptr;
  // Whether the rows of G^T, U^T and D keep length 1, as nGPT has them.
  bool has_unit_weights = false;
};

// y = dropout(silu(x G) * (x U)) D with silu(a) = a sigmoid(a), without biases.
//   x (..., width)   G, U (width, units): "<name>/gate/weight" and "<name>/up/weight"
//   D (units, width): "<name>/down/weight"   y like x
// Two thirds of the units of an ordinary feed-forward sublayer make as many parameters as it has.
Value gated_feed_forward(Net& net, const std::string& name, Value x,
                         const GatedFeedForwardOptions& options);

}  // namespace keel::nn
