// How a layer draws its parameters.
#pragma once

#include <functional>
#include <type_traits>
#include <utility>

#include "frontend/nn/init.h"

namespace keel::nn {

// An initializer from a layer's fans: how many inputs meet in one output, and how many outputs one
// input has a part in. For a convolution a window counts as so many inputs or outputs. Made from
// any function of (fan_in, fan_out), or of fan_in alone.
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

// xavier_uniform for the fans of the layer.
inline FanInit xavier(double gain = 1) {
  return [gain](std::int64_t fan_in, std::int64_t fan_out) {
    return xavier_uniform(fan_in, fan_out, gain);
  };
}

}  // namespace keel::nn
