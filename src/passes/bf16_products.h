// Products with bf16 factors.
#pragma once

#include "src/graph/graph.h"

namespace keel {

// The places of a node's inputs that are factors of products; empty for an op without products that
// take bf16.
std::vector<std::size_t> factors_of(const Node& node);

// Gives matrix products, convolutions, both attentions (q, k, v and what belongs to distances) and
// linear_cross_entropy (x, the table and the clusters) their float32 factors in bf16. Sums and
// results stay float32, as does everything else outside of these ops: losses, biases, gradients.
// Roundings are `cast` nodes. A value is cast once, however many products read it: a weight, or a
// gradient that both of its products take.
//
// Activations that only products and such backwards read are kept in bf16: the backwards of ReLU
// and of both attentions take their forward's result from the copy that the next product reads,
// cast back; that of ReLU also where there is a dropout between them.
//
// The pass runs on a graph that has its gradients: their products are products like any other, and
// the derivative of the rounding counts as 1, as it does for the op cast.
Graph bf16_products(const Graph& graph);

}  // namespace keel
