// Residual blocks of convolutional networks (He et al. 2016).
#pragma once

#include <string>

#include "frontend/nn/layers.h"

namespace keel::nn {

struct ResidualLayer {
  std::int64_t channels, stride = 1;
};

// A block of two 3 x 3 convolutions with a norm each, and a shortcut around both:
//     h = relu(norm(conv1(x)))            conv1 has the stride
//     y = relu(norm(conv2(h)) + shortcut(x))
//   x (n, c, h, w)   y (n, channels, ceil(h / stride), likewise)
// The shortcut has no parameters (section 4.2 there, option A): where sizes differ it takes every
// stride-th pixel of x, both ways, and puts (channels - c) / 2 channels of zeros on each side.
// Parameters: "<name>/conv1/weight" and so on. `conv` are options of both convolutions, with their
// norm. Throws Error{kUsage} if `channels` is less than c, or more by an odd number.
Value residual_block(Net& net, const std::string& name, Value x, const ResidualLayer& layer,
                     const LayerOptions& conv);

// Only the shortcut.
Value shortcut(Net& net, Value x, const ResidualLayer& layer);

}  // namespace keel::nn
