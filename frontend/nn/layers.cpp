#include "frontend/nn/layers.h"

#include "src/ops/conv2d.h"
#include "src/ops/matmul.h"

namespace keel::nn {
namespace {

Value parameter(Net& net, const std::string& name, const Shape& shape, Initializer initializer) {
  return net.graph.parameter(net.graph.prefix() + name, {net.dtype, shape}, std::move(initializer));
}

}  // namespace

Value linear(Net& net, const std::string& name, Value x, std::int64_t out,
             const LayerOptions& options) {
  const auto scope = net.graph.scope(name);
  const std::int64_t in = net.graph.shape(x).back();
  const Value weight = parameter(net, "weight", {in, out}, options.weight_init(in));
  Value bias;
  if (options.bias) bias = parameter(net, "bias", {out}, options.bias_init(in));
  return ops::matmul(net.graph, x, weight, {.bias = bias});
}

Value conv2d(Net& net, const std::string& name, Value x, const ConvLayer& layer,
             const LayerOptions& options) {
  const auto scope = net.graph.scope(name);
  const std::int64_t in = net.graph.shape(x)[1], fan_in = in * layer.window * layer.window;
  const Shape shape{layer.channels, in, layer.window, layer.window};
  const Value weight = parameter(net, "weight", shape, options.weight_init(fan_in));
  Value bias;
  if (options.bias) bias = parameter(net, "bias", {layer.channels}, options.bias_init(fan_in));
  return ops::conv2d(net.graph, x, weight,
                     {.bias = bias, .stride = layer.stride, .padding = layer.padding});
}

}  // namespace keel::nn
