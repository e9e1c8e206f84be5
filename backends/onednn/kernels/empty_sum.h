// Products and convolutions whose sums are empty (k = 0, no channels). Their
// results do not need a primitive.
#pragma once

#include <algorithm>

#include "src/runtime/backend.h"

namespace keel::onednn {

inline Prepared fill_zero() {
  return kernel_of([](const Binding& b) {
    const TensorRef& y = b.outputs[0];
    std::fill_n(y.as<float>(), y.elements(), 0.0f);
  });
}

// y[.., c, i] = act(bias[c]) for `inner` elements i a channel; input `place` is the bias, or
// absent.
inline Prepared fill_bias(int place, std::int64_t inner, bool relu) {
  return kernel_of([=](const Binding& b) {
    const TensorRef &y = b.outputs[0], &bias = b.inputs[std::size_t(place)];
    for (std::int64_t i = 0; i < y.elements(); ++i) {
      const float value = bias ? bias.as<float>()[i / inner % bias.elements()] : 0;
      y.as<float>()[i] = relu && value <= 0 ? 0 : value;
    }
  });
}

inline Prepared do_nothing() {
  return kernel_of([](const Binding&) {});
}

}  // namespace keel::onednn
