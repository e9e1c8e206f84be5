#include "frontend/nn/layers.h"

#include "src/ops/conv2d.h"
#include "src/ops/matmul.h"

namespace keel::nn {
namespace {

// What a layer has learned; gain and bias may be absent.
struct Learned {
  Value weight, gain, bias;
};

Learned add_parameters(Net& net, const Shape& shape, int unit_axis, const LayerOptions& options) {
  const std::int64_t fan_in = unit_axis == 1 ? shape[0] : shape.elements(1, shape.rank());
  const WeightForm form = options.norm ? options.norm->weight_form() : WeightForm{};
  const Value v = net.parameter(
      "weight", shape, form.normalize ? normal(form.deviation) : options.weight_init(fan_in));
  FormedWeight formed{v, {}};
  if (options.norm) formed = options.norm->of_weight(net, "norm", v, unit_axis);
  Value bias;
  if (options.bias) bias = net.parameter("bias", {shape[unit_axis]}, options.bias_init(fan_in));
  return {formed.weight, formed.gain, bias};
}

// What comes after the product y, whose units lie along unit_axis.
Value finish(Net& net, Value y, int unit_axis, const Learned& learned,
             const LayerOptions& options) {
  if (net.mode == Mode::kInitialize && learned.gain.valid()) {
    y = start_from_batch(net, y, unit_axis, learned.gain, learned.bias);
  }
  return options.norm ? options.norm->of_output(net, "norm", y) : y;
}

}  // namespace

Value linear(Net& net, const std::string& name, Value x, std::int64_t out,
             const LayerOptions& options) {
  const auto scope = net.graph.scope(name);
  const int last = net.graph.shape(x).rank() - 1;
  const Learned learned = add_parameters(net, {net.graph.shape(x)[last], out}, 1, options);
  const Value y = ops::matmul(net.graph, x, learned.weight, {.bias = learned.bias});
  return finish(net, y, last, learned, options);
}

Value conv2d(Net& net, const std::string& name, Value x, const ConvLayer& layer,
             const LayerOptions& options) {
  const auto scope = net.graph.scope(name);
  const Shape shape{layer.channels, net.graph.shape(x)[1], layer.window, layer.window};
  const Learned learned = add_parameters(net, shape, 0, options);
  const Value y =
      ops::conv2d(net.graph, x, learned.weight,
                  {.bias = learned.bias, .stride = layer.stride, .padding = layer.padding});
  return finish(net, y, 1, learned, options);
}

}  // namespace keel::nn
