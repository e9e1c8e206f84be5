#include "models/mnist_mlp/model.h"

#include "frontend/nn/layers.h"
#include "models/mnist_data.h"

namespace keel::models {
namespace {

std::vector<data::TableColumn> columns() {
  return {{"image", DType::kF32, {784}, {.scale = 1.0f / 255, .offset = 0}},
          {"label", DType::kI32}};
}

nn::Norm norm_of(const MnistMlpOptions& options) {
  const bool is_batch_norm = options.norm.starts_with("batchnorm");
  return nn::Norm::parse(options.norm, is_batch_norm ? options.batchnorm_options : "");
}

}  // namespace

void MnistMlpOptions::validate() const { nn::PlacedNorm{norm_of(*this), placement}.validate(); }

task::Prepared MnistMlp::prepare(const task::DataRequest& request, const task::Assets*) const {
  return {restore({}), load_digits(request, Validation::kLast, columns())};
}

std::vector<task::Input> MnistMlpNetwork::inputs(const task::Sizes& sizes) const {
  return data::inputs_of(columns(), sizes);
}

task::Outputs MnistMlpNetwork::build(nn::Net& net, const task::Inputs& in) const {
  const nn::Norm norm = norm_of(options_);
  Value h = in["image"];
  for (std::int64_t layer = 1; layer <= options_.layers; ++layer) {
    h = nn::linear_relu(net, fmt::format("fc{}", layer), h, options_.hidden,
                        {norm, options_.placement});
  }
  // Ba et al. leave the logits alone under layer norm, for their scale is the confidence, and
  // normalize them too in the batch norm baseline.
  nn::LayerOptions layer;
  if (norm.is_batch_type()) layer = {.bias = !norm.has_bias(), .norm = norm};
  const Value logits = nn::linear(net, "logits", h, 10, layer);
  return task::classification(net.graph, logits, in["label"]);
}

std::unique_ptr<task::Decoder> MnistMlpNetwork::decoder(std::span<const std::string> files,
                                                        std::int64_t) const {
  return digit_decoder(files, columns());
}

}  // namespace keel::models
