// Helpers of the tests of placements: a layer in each of them.
#pragma once

#include <string>

#include "frontend/nn/transformer.h"
#include "tests/frontend/nn/helpers.h"

namespace keel::nn {

template <class Body>
void for_each_place(const Body& body) {
  for (std::size_t i = 0; i < kPlacements.size(); ++i) {
    const std::string place(kPlacements[i].name);
    CAPTURE(place);
    body(NormPlace(i));
  }
}

inline TransformerOptions placed(NormPlace place, const char* norm = "layernorm") {
  return {.heads = 2,
          .feed_forward = 3,
          .place = place,
          .depth = {.layer = 2, .layers = 3},
          .norm = Norm::parse(norm)};
}

inline Layer placed_encoder(NormPlace place, const char* norm = "layernorm") {
  return [options = placed(place, norm)](Net& net, Value x) {
    return encoder_layer(net, "layer", x, {}, options);
  };
}

}  // namespace keel::nn
