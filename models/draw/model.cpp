#include "models/draw/model.h"

#include "models/draw/sampler.h"
#include "src/ops/elementwise.h"
#include "src/ops/layout.h"
#include "src/ops/loss.h"
#include "src/ops/reduce.h"

namespace keel::models {

void DrawOptions::validate() const { nn::Norm::parse(norm); }

task::Prepared Draw::prepare(const task::DataRequest& request, const task::Assets*) const {
  return {restore({}), load_binary_digits(request, options_.binarize, options_.test_samples)};
}

std::vector<task::Input> DrawNetwork::inputs(const task::Sizes& sizes) const {
  std::vector<task::Input> inputs = data::inputs_of(draw_columns(), sizes);
  if (sizes.size() > 1) inputs[0].type.shape = {sizes[0], sizes[1], DrawSizes().columns};
  return inputs;
}

DrawNetOptions DrawNetwork::network(nn::Net& net, Value numbers) const {
  Graph& g = net.graph;
  DrawNetOptions options{.sizes = {.glimpses = options_.glimpses,
                                   .width = options_.width,
                                   .latent = options_.latent,
                                   .read = options_.read,
                                   .write = options_.write},
                         .grid = options_.grid,
                         .norms = {.input = {}, .recurrent = {}, .cell = {}},
                         .init_deviation = options_.init_deviation,
                         .seed = std::int64_t(net.seed),
                         .key = {}};
  const nn::Norm norm = nn::Norm::parse(options_.norm);
  options.norms.cell = nn::cell_norms(norm).cell;
  if (net.training()) {
    options.key = net.random_key("draw");
    return options;
  }
  // Rows come in order, so that the first one's number is those of all.
  const Value first = ops::reshape(g, ops::slice_axis(g, numbers, 0, 0, 1), Shape{});
  options.key = {g.constant(Tensor(DType::kI32, {})), first};
  options.seed = options_.sample_seed;
  return options;
}

task::Outputs DrawNetwork::build(nn::Net& net, const task::Inputs& in) const {
  Graph& g = net.graph;
  const Value x = in["image"];
  const DrawNetOptions options = network(net, in["number"]);
  if (g.shape(x)[1] == 0) {
    const DrawOutputs drawn = draw_samples(net, options, g.shape(x)[0]);
    const Value canvases = ops::sigmoid(g, nn::stack(net, drawn.canvases));
    return {.loss_sum = g.constant(0, net.dtype), .predictions = {{"canvases", canvases}}};
  }
  const DrawOutputs out = draw_image(net, options, x);
  const Value reconstruction = ops::bce_with_logits(g, out.canvas, x).sum;
  const Value bound = ops::add(g, reconstruction, out.kl);
  return {.loss_sum = bound,
          .metrics = {{.name = "bound", .sum = bound},
                      {.name = "reconstruction", .sum = reconstruction},
                      {.name = "kl", .sum = out.kl}}};
}

std::vector<task::MetricInfo> Draw::metrics() const {
  return {{.name = "bound", .unit = "nats", .of = task::mean_of},
          {.name = "reconstruction", .unit = "nats", .of = task::mean_of, .has_direction = false},
          {.name = "kl", .unit = "nats", .of = task::mean_of, .has_direction = false}};
}

std::unique_ptr<task::Decoder> DrawNetwork::decoder(std::span<const std::string> lines,
                                                    std::int64_t) const {
  return std::make_unique<DrawSampler>(lines);
}

}  // namespace keel::models
