#include "models/mnist_cnn/model.h"

#include "frontend/nn/layers.h"
#include "models/mnist_data.h"
#include "src/ops/elementwise.h"
#include "src/ops/layout.h"
#include "src/ops/pool2d.h"

namespace keel::models {
namespace {

// U(+-1 / sqrt(fan_in)) for weights and biases, as the authors' framework initialises.
const nn::LayerOptions kLayer{
    .bias = true, .weight_init = nn::fan_in_uniform, .bias_init = nn::fan_in_uniform};

// conv5 -> [norm] -> ReLU -> max pool 2:  (n, c, s, s) -> (n, channels, (s - 4) / 2, likewise)
Value conv_block(nn::Net& net, const std::string& name, Value x, std::int64_t channels,
                 const nn::LayerOptions& layer) {
  const Value h = nn::conv2d(net, name, x, {.channels = channels, .window = 5}, layer);
  return ops::max_pool2d(net.graph, ops::relu(net.graph, h), 2, 2);
}

std::vector<data::TableColumn> columns_of(const MnistCnnOptions& options) {
  const data::Affine plain{.scale = 1.0f / 255, .offset = 0};
  const data::Affine standard{.scale = 1.0f / (255 * 0.3081f), .offset = -0.1307f / 0.3081f};
  return {{"image", DType::kF32, {1, 28, 28}, options.standardize ? standard : plain},
          {"label", DType::kI32}};
}

}  // namespace

void MnistCnnOptions::validate() const {
  check(architecture.size() == 1 && architecture >= "A" && architecture <= "D", ErrorKind::kUsage,
        "architecture: expected A, B, C or D, got '{}'", architecture);
  nn::Norm::parse(norm);
}

task::Prepared MnistCnn::prepare(const task::DataRequest& request, const task::Assets*) const {
  return {restore({}), load_digits(request, Validation::kFirst, columns_of(options_))};
}

std::vector<task::Input> MnistCnnNetwork::inputs(const task::Sizes& sizes) const {
  return data::inputs_of(columns_of(options_), sizes);
}

task::Outputs MnistCnnNetwork::build(nn::Net& net, const task::Inputs& in) const {
  Graph& g = net.graph;
  nn::LayerOptions normed = kLayer;
  normed.norm = nn::Norm::parse(options_.norm);
  const std::string& architecture = options_.architecture;
  const nn::LayerOptions& conv = architecture == "C" || architecture == "D" ? normed : kLayer;
  Value h = conv_block(net, "conv1", in["image"], 20, conv);
  h = conv_block(net, "conv2", h, 50, conv);
  const Shape shape = g.shape(h);
  h = ops::reshape(g, h, {shape[0], shape.elements(1, 4)});
  Value logits;
  if (architecture == "B") {
    logits = nn::linear(net, "logits", h, 10, normed);
  } else {
    h = nn::linear(net, "fc1", h, 500, architecture == "D" ? kLayer : normed);
    logits = nn::linear(net, "logits", ops::relu(g, h), 10, kLayer);
  }
  return task::classification(g, logits, in["label"]);
}

std::unique_ptr<task::Decoder> MnistCnnNetwork::decoder(std::span<const std::string> files,
                                                        std::int64_t) const {
  return digit_decoder(files, columns_of(options_));
}

}  // namespace keel::models
