#include "models/cifar_vgg/model.h"

#include "frontend/nn/layers.h"
#include "src/ops/elementwise.h"
#include "src/ops/layout.h"
#include "src/ops/pool2d.h"

namespace keel::models {
namespace {

struct VggConv {
  std::int64_t channels;  // before they are divided
  bool pools;             // a max-pool follows
};
constexpr VggConv kVggA[] = {{64, true},   {128, true}, {256, false}, {256, true},
                             {512, false}, {512, true}, {512, false}, {512, true}};
constexpr std::int64_t kUnits = 512;

}  // namespace

void CifarVggOptions::validate() const {
  check(64 % divisor == 0, ErrorKind::kUsage, "divisor: expected a divisor of 64, got {}", divisor);
  nn::Norm::parse(norm);
}

task::Outputs CifarVggNetwork::build(nn::Net& net, const task::Inputs& in) const {
  Graph& g = net.graph;
  const nn::LayerOptions conv{.weight_init = nn::kaiming_normal,
                              .norm = nn::Norm::parse(options_.norm)};
  Value h = in["image"];
  int number = 0;
  for (const VggConv& layer : kVggA) {
    h = nn::conv2d(net, fmt::format("conv{}", ++number), h,
                   {.channels = layer.channels / options_.divisor, .window = 3, .padding = 1},
                   conv);
    h = ops::relu(g, h);
    if (layer.pools) h = ops::max_pool2d(g, h, 2, 2);
  }
  const nn::LayerOptions dense{.weight_init = nn::kaiming_normal};
  h = ops::reshape(g, h, {g.shape(h)[0], kUnits / options_.divisor});
  for (const char* name : {"fc1", "fc2"}) {
    h = ops::relu(g, nn::linear(net, name, h, kUnits / options_.divisor, dense));
  }
  return task::classification(g, nn::linear(net, "logits", h, std::ssize(classes_), dense),
                              in["label"]);
}

}  // namespace keel::models
