#include "frontend/nn/relu_layer.h"

#include "src/ops/elementwise.h"

namespace keel::nn {

void PlacedNorm::validate() const {
  check(placement == NormPlacement::kBefore || norm.weight_form().is_plain(), ErrorKind::kUsage,
        "placement: expected before for {}, which normalizes weights, got after", norm.name());
}

Value linear_relu(Net& net, const std::string& name, Value x, std::int64_t out,
                  const PlacedNorm& placed) {
  const auto& [norm, placement] = placed;
  if (placement == NormPlacement::kAfter) {
    return norm(net, name + "/norm", ops::relu(net.graph, linear(net, name, x, out)));
  }
  return ops::relu(net.graph, linear(net, name, x, out, {.bias = !norm.has_bias(), .norm = norm}));
}

}  // namespace keel::nn
