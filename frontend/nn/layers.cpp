#include "frontend/nn/layers.h"

#include "src/ops/conv2d.h"
#include "src/ops/dropout.h"
#include "src/ops/elementwise.h"
#include "src/ops/matmul.h"

namespace keel::nn {
namespace {

struct Fans {
  std::int64_t in, out;
};

// The fans of a weight (in, out), or (out, in, window, window) where unit_axis is 0.
Fans fans_of(const Shape& weight, int unit_axis) {
  if (unit_axis == 1) return {weight[0], weight[1]};
  const std::int64_t window = weight.elements(2, weight.rank());
  return {weight[1] * window, weight[0] * window};
}

void add_bias(Net& net, LayerParts& parts, std::int64_t units, const Fans& fans,
              const LayerOptions& options) {
  if (!options.bias) return;
  parts.bias = net.parameter("bias", {units}, options.bias_init(fans.in, fans.out));
}

// For the scope of the layer.
std::shared_ptr<LayerParts> make_parts(Net& net, const Shape& shape, int unit_axis,
                                       const LayerOptions& options) {
  const Fans fans = fans_of(shape, unit_axis);
  const WeightForm form = options.norm ? options.norm->weight_form() : WeightForm{};
  auto parts = std::make_shared<LayerParts>();
  const Initializer init =
      form.normalize ? normal(form.deviation) : options.weight_init(fans.in, fans.out);
  parts->weight =
      net.parameter("weight", shape, with_unit_vectors(init, options.unit), {.unit = options.unit});
  if (options.norm) {
    const WeightParametrization formed =
        options.norm->parametrized(net, "norm", parts->weight, unit_axis);
    parts->weight = formed.weight;
    parts->gain = formed.gain;
    parts->gain_init = form.gain_init;
    parts->norm = NormLayer::behind_weight(net, "norm", *options.norm);
  }
  add_bias(net, *parts, shape[unit_axis], fans, options);
  return parts;
}

// The rest of the layer after the product y, whose units lie along unit_axis.
Value finish(Net& net, Value y, int unit_axis, LayerParts& parts, const LayerCall& call) {
  if (net.mode == Mode::kDataDependentInit && parts.gain.valid()) {
    if (!parts.start) {
      parts.start = measure_batch(net, y, unit_axis, parts.gain_init);
      start_parameters(net, *parts.start, parts.gain, parts.bias);
    }
    y = started(net, y, *parts.start, parts.bias.valid());
  }
  return parts.norm ? (*parts.norm)(y, call) : y;
}

}  // namespace

Linear::Linear(Net& net, const std::string& name, std::int64_t in, std::int64_t out,
               const LayerOptions& options)
    : Linear(net, name, false) {
  const auto scope = net.graph.scope(name);
  parts_ = make_parts(net, {in, out}, 1, options);
}

Linear Linear::sharing(Net& net, const std::string& name, Value table,
                       const LayerOptions& options) {
  const Shape shape = net.graph.shape(table);
  check(shape.rank() == 2, ErrorKind::kUsage, "[linear] {}: expected a table (out, in), got {}",
        name, shape.text());
  check(!options.norm || options.norm->weight_form().is_plain(), ErrorKind::kUsage,
        "[linear] {}: expected no norm of the weight, which is shared, got {}", name,
        options.norm ? options.norm->name() : "");
  const auto scope = net.graph.scope(name);
  Linear layer(net, name, true);
  layer.parts_ = std::make_shared<LayerParts>();
  layer.parts_->weight = table;
  add_bias(net, *layer.parts_, shape[0], {shape[1], shape[0]}, options);
  if (options.norm) layer.parts_->norm = NormLayer(net, "norm", *options.norm);
  return layer;
}

Value Linear::operator()(Value x, const LayerCall& call) const {
  Graph& g = net_->graph;
  const auto scope = g.scope(name_);
  const Value y =
      ops::matmul(g, x, parts_->weight, {.bias = parts_->bias, .transpose_b = transposes_});
  return finish(*net_, y, g.shape(y).rank() - 1, *parts_, call);
}

Value Linear::after_product(Value product, const LayerCall& call) const {
  Graph& g = net_->graph;
  const auto scope = g.scope(name_);
  const Value y = parts_->bias.valid() ? ops::add(g, product, parts_->bias) : product;
  return finish(*net_, y, g.shape(y).rank() - 1, *parts_, call);
}

Conv2d::Conv2d(Net& net, const std::string& name, std::int64_t in_channels, const ConvLayer& layer,
               const LayerOptions& options)
    : net_(&net), name_(name), layer_(layer) {
  const auto scope = net.graph.scope(name);
  const Shape shape{layer.channels, in_channels, layer.window, layer.window};
  parts_ = make_parts(net, shape, 0, options);
}

Value Conv2d::operator()(Value x, const LayerCall& call) const {
  const auto scope = net_->graph.scope(name_);
  const Value y =
      ops::conv2d(net_->graph, x, parts_->weight,
                  {.bias = parts_->bias, .stride = layer_.stride, .padding = layer_.padding});
  return finish(*net_, y, 1, *parts_, call);
}

Value linear(Net& net, const std::string& name, Value x, std::int64_t out,
             const LayerOptions& options) {
  return Linear(net, name, net.graph.shape(x).back(), out, options)(x);
}

Value conv2d(Net& net, const std::string& name, Value x, const ConvLayer& layer,
             const LayerOptions& options) {
  return Conv2d(net, name, net.graph.shape(x)[1], layer, options)(x);
}

Value dropout(Net& net, Value x, double p) {
  if (net.mode != Mode::kTrain || p == 0) return x;
  return ops::dropout(net.graph, x, net.random_key("dropout"), p, std::int64_t(net.seed));
}

}  // namespace keel::nn
