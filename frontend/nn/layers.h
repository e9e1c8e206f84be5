// Linear and convolution layers, with a norm or without. Parameters are named "<name>/weight" and
// "<name>/bias", those of the norm "<name>/norm/...".
#pragma once

#include <functional>
#include <optional>

#include "frontend/nn/init.h"
#include "frontend/nn/norm.h"

namespace keel::nn {

// How a layer draws its parameters, given its fan-in.
using FanInit = std::function<Initializer(std::int64_t fan_in)>;

struct LayerOptions {
  bool bias = true;
  FanInit weight_init = lecun_normal;
  FanInit bias_init = [](std::int64_t) { return zeros(); };
  // Of the layer's output y or, for a norm of weights, of W: that one also decides how W is drawn.
  std::optional<Norm> norm = std::nullopt;
};

// y = x W + b.   x (..., in)   W (in, out)   b (out)   y (..., out)
Value linear(Net& net, const std::string& name, Value x, std::int64_t out,
             const LayerOptions& options = {});

struct ConvLayer {
  std::int64_t channels, window;
  std::int64_t stride = 1, padding = 0;
};
// x (n, c, h, w)   weight (channels, c, window, window)   bias (channels)
Value conv2d(Net& net, const std::string& name, Value x, const ConvLayer& layer,
             const LayerOptions& options = {});

}  // namespace keel::nn
