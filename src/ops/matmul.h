// Matrix product, 2-D or batched:  y = act(op(a) op(b) + bias),  op transposes its last two axes.
//
//   a (..., m, k) or with transpose_a (..., k, m);  b (..., k, n) or with transpose_b (..., n, k)
//   bias (n) or absent                               y (..., m, n)
// Leading (batch) axes of a and b are equal, or b has none and is shared by all of them.
// backward (Exact):  da = dy b^T,  db = a^T dy (added up over the batch if b is shared),
//                    dbias = dy added up over all rows.  `activation` is set by the fusion pass
//                    only, after gradients are built.
// errors: rank < 2; mixed or integer types; inner sizes or batch axes that differ; bias not (n).
#pragma once

#include "src/graph/graph.h"
#include "src/ops/activation.h"

namespace keel {

// Inputs have these places.
struct MatmulInput {
  enum Place : int { kA, kB, kBias };
};

struct MatmulAttrs {
  bool transpose_a = false, transpose_b = false;
  Activation activation = Activation::kNone;
  static constexpr auto fields() {
    return std::tuple{field("transpose_a", &MatmulAttrs::transpose_a),
                      field("transpose_b", &MatmulAttrs::transpose_b),
                      field("activation", &MatmulAttrs::activation)};
  }
};

// Sizes of one product: `batch` products of (m, k) x (k, n); b is one matrix when `shared_b`.
struct MatmulSizes {
  std::int64_t batch, m, k, n;
  bool shared_b;
};
MatmulSizes matmul_sizes(const Shape& a, const Shape& b, const MatmulAttrs& attrs);

extern const OpInfo kMatmul;

namespace ops {

struct MatmulOptions {
  Value bias = {};
  bool transpose_a = false, transpose_b = false;
};
Value matmul(Graph& g, Value a, Value b, const MatmulOptions& options = {});

}  // namespace ops
}  // namespace keel
