// A hidden layer: a linear layer, a norm and a ReLU, the norm before the ReLU or after it.
#pragma once

#include <array>
#include <string_view>

#include "frontend/nn/layers.h"

namespace keel::nn {

// Where a norm stands: before the activation or after it.
enum class NormPlacement { kBefore, kAfter };
constexpr auto choice_words(NormPlacement) {
  return std::to_array<std::string_view>({"before", "after"});
}

struct PlacedNorm {
  Norm norm;
  NormPlacement placement = NormPlacement::kBefore;

  // Throws Error{kUsage} for a norm of weights after the activation: it has no place among values.
  void validate() const;
};

// before: y = relu(norm(x W + b)), where b is left out if the norm has a bias.
// after:  y = norm(relu(x W + b)).
// Parameters are named as a layer's.
Value linear_relu(Net& net, const std::string& name, Value x, std::int64_t out,
                  const PlacedNorm& placed);

}  // namespace keel::nn
