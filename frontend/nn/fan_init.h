// Initializers that depend on the number of a layer's inputs and outputs.
#pragma once

#include <functional>
#include <type_traits>
#include <utility>

#include "frontend/nn/init.h"

namespace keel::nn {

// An initializer from a layer's fans: the number of inputs that meet in one output, and the number
// of outputs that one input contributes to. A convolution counts each place of its window. Made
// from any function of (fan_in, fan_out), or of fan_in only.
class FanInit {
 public:
  template <class Function>
  requires(!std::is_same_v<std::decay_t<Function>, FanInit>) FanInit(Function function) {
    if constexpr (std::is_invocable_v<Function, std::int64_t, std::int64_t>) {
      init_ = std::move(function);
    } else {
      init_ = [function](std::int64_t fan_in, std::int64_t) { return function(fan_in); };
    }
  }
  Initializer operator()(std::int64_t fan_in, std::int64_t fan_out) const {
    return init_(fan_in, fan_out);
  }

 private:
  std::function<Initializer(std::int64_t fan_in, std::int64_t fan_out)> init_;
};

// xavier_uniform with the layer's fans.
inline FanInit xavier(double gain = 1) {
  return [gain](std::int64_t fan_in, std::int64_t fan_out) {
    return xavier_uniform(fan_in, fan_out, gain);
  };
}

}  // namespace keel::nn
