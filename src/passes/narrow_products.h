// Products with bf16 factors.
#pragma once

#include "src/graph/graph.h"

namespace keel {

// Gives matrix products, convolutions and attention (q, k and v) their float32 factors in bf16.
// Sums and results stay float32, as does everything else: probabilities, biases, gradients.
// Roundings are `cast` nodes. A value is cast once, however many products read it: a weight, or a
// gradient that both of its products take.
//
// Activations that only products and such backwards read are kept in bf16: the backward of ReLU and
// of attention take their forward's result from the copy that the next product reads, cast back.
//
// The pass runs on a graph that has its gradients: their products are products like any other, and
// the derivative of the rounding counts as 1, as it does for the op cast.
Graph narrow_products(const Graph& graph);

}  // namespace keel
