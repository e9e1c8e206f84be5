#include "frontend/nn/gated_feed_forward.h"

#include "frontend/nn/layers.h"
#include "src/ops/elementwise.h"

namespace keel::nn {

Value gated_feed_forward(Net& net, const std::string& name, Value x,
                         const GatedFeedForwardOptions& options) {
  Graph& g = net.graph;
  const auto scope = g.scope(name);
  const LayerOptions layer{.bias = false, .weight_init = options.init};
  const Value gate = linear(net, "gate", x, options.units, layer);
  const Value up = linear(net, "up", x, options.units, layer);
  const Value silu = ops::mul(g, gate, ops::sigmoid(g, gate));
  const Value h = dropout(net, ops::mul(g, silu, up), options.dropout);
  return linear(net, "down", h, g.shape(x).back(), layer);
}

}  // namespace keel::nn
