#include "models/cifar_resnet20/model.h"

#include "frontend/nn/residual.h"
#include "src/ops/elementwise.h"
#include "src/ops/reduce.h"

namespace keel::models {

void CifarResnet20Options::validate() const {
  check((depth - 2) % 6 == 0, ErrorKind::kUsage, "depth: expected 6 n + 2, got {}", depth);
  // A shortcut adds half of a stage's new channels on either side.
  check(width % 2 == 0, ErrorKind::kUsage, "width: expected an even number, got {}", width);
  nn::Norm::parse(norm);
}

Value CifarResnet20Network::stage(nn::Net& net, int number, Value h,
                                  const nn::LayerOptions& conv) const {
  const auto scope = net.graph.scope(fmt::format("stage{}", number));
  const std::int64_t blocks = (options_.depth - 2) / 6;
  nn::ResidualLayer layer{.channels = options_.width << (number - 1),
                          .stride = number == 1 ? 1 : 2};
  for (std::int64_t block = 1; block <= blocks; ++block) {
    h = nn::residual_block(net, fmt::format("block{}", block), h, layer, conv);
    layer.stride = 1;
  }
  return h;
}

task::Outputs CifarResnet20Network::build(nn::Net& net, const task::Inputs& in) const {
  Graph& g = net.graph;
  const nn::Norm norm = nn::Norm::parse(options_.norm);
  const nn::LayerOptions conv{
      .bias = !norm.has_bias(), .weight_init = nn::kaiming_normal, .norm = norm};
  Value h = nn::conv2d(net, "conv", in["image"],
                       {.channels = options_.width, .window = 3, .padding = 1}, conv);
  h = ops::relu(g, h);
  for (const int number : {1, 2, 3}) h = stage(net, number, h, conv);
  const Value logits =
      nn::linear(net, "logits", ops::mean(g, h, {2, 3}), std::ssize(classes_),
                 {.weight_init = nn::kaiming_normal, .bias_init = nn::fan_in_uniform});
  return task::classification(g, logits, in["label"]);
}

}  // namespace keel::models
