#include "frontend/nn/placement.h"

#include <cmath>

#include "src/core/choice.h"
#include "src/core/error.h"

namespace keel::nn {
namespace {

PlacementFactors deep_norm_factors(const StackDepth& depth) {
  if (depth.decoder_layers == 0) {
    const double branches = double(depth.layers * depth.branches);
    return {.residual = std::pow(branches, 0.25), .weights = std::pow(4 * branches, -0.25)};
  }
  const double root =
      std::pow(std::pow(double(depth.layers), 4) * double(depth.decoder_layers), 1.0 / 16);
  return {.residual = 0.81 * root, .weights = 0.87 / root};
}

}  // namespace

PlacementFactors placement_factors(NormPlace place, const StackDepth& depth) {
  const auto expect = [&](std::int64_t number, std::string_view what) {
    check(number > 0, ErrorKind::kUsage, "place {}: expected {} (StackDepth), got {}",
          choice_text(place), what, number);
  };
  switch (place) {
    case NormPlace::kLns:
      expect(depth.layer, "the number of the layer");
      return {.norm = 1 / std::sqrt(double(depth.layer))};
    case NormPlace::kDeepNorm:
      expect(depth.layers, "the number of layers");
      return deep_norm_factors(depth);
    case NormPlace::kScaledPost:
      expect(depth.layers, "the number of layers");
      return {.residual = double(depth.layers * depth.branches)};
    default:
      return {};
  }
}

}  // namespace keel::nn
