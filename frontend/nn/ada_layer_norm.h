// adaLN-Zero (Peebles & Xie 2023, "Scalable Diffusion Models with Transformers"): a residual branch
// whose layer norm takes scale and shift from a condition of the sequence, such as a class or a
// time. Branches begin closed.
#pragma once

#include <functional>
#include <string>

#include "frontend/nn/net.h"

namespace keel::nn {

// y = x + gate * F(n(x) * (1 + scale) + shift), n being a layer norm without gain and bias, with
// eps = 1e-6, and
//     (shift, scale, gate) = silu(c) W + b,   silu(a) = a sigmoid(a)
//   x, y (batch, ..., width)   c (batch, conditions)
//   W (conditions, 3 width), b (3 width): "<name>/modulation/weight" and "<name>/modulation/bias",
//     in this order of columns. They begin at 0, and so y = x; the gate is the first to learn.
// `branch` is F, whose result is like x.
// Throws Error{kUsage} for an x without sequences, and for a c that is not (batch, conditions).
Value ada_layer_norm_zero(Net& net, const std::string& name, Value x, Value c,
                          const std::function<Value(Value)>& branch);

}  // namespace keel::nn
