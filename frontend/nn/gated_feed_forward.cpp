#include "frontend/nn/gated_feed_forward.h"

#include "frontend/nn/layers.h"
#include "src/ops/elementwise.h"

namespace keel::nn {

Value gated_feed_forward(Net& net, const std::string& name, Value x,
                         const GatedFeedForwardOptions& options) {
  Graph& g = net.graph;
  const auto scope = g.scope(name);
  const auto map = [&](const std::string& map, Value v, std::int64_t units, UnitVectors unit) {
    const Value y = linear(net, map, v, units,
                           {.bias = false,
                            .weight_init = options.init,
                            .unit = options.has_unit_weights ? unit : UnitVectors::kNone});
    return options.after_map ? options.after_map(map, y) : y;
  };
  const Value gate = map("gate", x, options.units, UnitVectors::kColumns);
  const Value up = map("up", x, options.units, UnitVectors::kColumns);
  const Value silu = ops::mul(g, gate, ops::sigmoid(g, gate));
  const Value h = dropout(net, ops::mul(g, silu, up), options.dropout);
  return map("down", h, g.shape(x).back(), UnitVectors::kRows);
}

}  // namespace keel::nn
