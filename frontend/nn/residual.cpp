#include "frontend/nn/residual.h"

#include "src/ops/elementwise.h"
#include "src/ops/layout.h"
#include "src/ops/pool2d.h"

namespace keel::nn {

Value shortcut(Net& net, Value x, const ResidualLayer& layer) {
  Graph& g = net.graph;
  const std::int64_t more = layer.channels - g.shape(x)[1];
  check(more >= 0 && more % 2 == 0, ErrorKind::kUsage,
        "[residual] channels: expected {} or more, by an even number, got {}", g.shape(x)[1],
        layer.channels);
  // A window of one pixel takes every stride-th.
  if (layer.stride > 1) x = ops::avg_pool2d(g, x, 1, layer.stride);
  if (more == 0) return x;
  return ops::pad(g, x, {0, more / 2, 0, 0}, {0, more / 2, 0, 0});
}

Value residual_block(Net& net, const std::string& name, Value x, const ResidualLayer& layer,
                     const LayerOptions& conv) {
  Graph& g = net.graph;
  const auto scope = g.scope(name);
  const ConvLayer first{
      .channels = layer.channels, .window = 3, .stride = layer.stride, .padding = 1};
  const ConvLayer second{.channels = layer.channels, .window = 3, .stride = 1, .padding = 1};
  Value h = ops::relu(g, conv2d(net, "conv1", x, first, conv));
  h = conv2d(net, "conv2", h, second, conv);
  return ops::relu(g, ops::add(g, h, shortcut(net, x, layer)));
}

}  // namespace keel::nn
