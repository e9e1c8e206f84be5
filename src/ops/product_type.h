// The element types of products and convolutions, whose factors may be bf16.
#pragma once

#include "src/graph/graph.h"

namespace keel {

// The type of the result and of the bias: products of bf16 factors are added up in float32, and
// stay so.
constexpr DType product_type(DType factors) {
  return factors == DType::kBF16 ? DType::kF32 : factors;
}

// `dy`, the gradient of such a result, as a factor beside `other`. Its rounding to bf16 is a node.
Value as_factor(Graph& g, Value dy, Value other);

}  // namespace keel
