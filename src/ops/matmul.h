// Matrix product, 2-D or batched:  y = act(op(a) op(b) + bias),  op transposes its last two axes.
//
//   a (..., m, k) or with transpose_a (..., k, m);  b (..., k, n) or with transpose_b (..., n, k)
//   bias (n) or absent                               y (..., m, n)
// a and b have one type. If it is bf16, bias and y are float32, and sums are added up in float32.
// Leading (batch) axes of a and b are equal, or b has none and is shared by all of them.
// backward (Exact):  da = dy b^T,  db = a^T dy (added up over the batch if b is shared),
//                    dbias = dy added up over all rows; with bf16 factors, dy is cast to bf16 for
//                    the two products.  `activation` is set by the fusion pass
//                    only, after gradients are built.
// Alternatively b is stored in panels of w columns, (ceil(n / w), k', w) with k' >= k: element
// (i, j) of the matrix (k, n) lies at (j / w, i, j % w), and zeros fill the rest. Only the pass
// pack_weights makes such nodes, after gradients are built.
// errors: rank < 2; mixed or integer types; inner sizes or batch axes that differ; bias not (n);
//         panels that do not hold the matrix, or are transposed.
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
  std::int64_t packed_columns = 0;  // n, if b is packed; else 0
  static constexpr auto fields() {
    return std::tuple{field("transpose_a", &MatmulAttrs::transpose_a),
                      field("transpose_b", &MatmulAttrs::transpose_b),
                      field("activation", &MatmulAttrs::activation),
                      field("packed_columns", &MatmulAttrs::packed_columns)};
  }
};

// Sizes of one product: `batch` products of (m, k) x (k, n); b is one matrix when `shared_b`.
struct MatmulSizes {
  std::int64_t batch, m, k, n;
  bool shared_b;
};
MatmulSizes matmul_sizes(const Shape& a, const Shape& b, const MatmulAttrs& attrs);

// How a shared b is cut into panels: `width` columns each (0: b stays a matrix), and as many rows
// as b has, rounded up to a multiple of `row_multiple`.
struct PackedLayout {
  std::int64_t width = 0, row_multiple = 1;
  Shape shape(std::int64_t k, std::int64_t n) const;  // of the panels of a matrix (k, n)
  bool operator==(const PackedLayout&) const = default;
};

extern const OpInfo kMatmul;

namespace ops {

struct MatmulOptions {
  Value bias = {};
  bool transpose_a = false, transpose_b = false;
};
Value matmul(Graph& g, Value a, Value b, const MatmulOptions& options = {});

}  // namespace ops
}  // namespace keel
