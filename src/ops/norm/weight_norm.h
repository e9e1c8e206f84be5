// Weight normalization (Salimans & Kingma 2016): each output unit's weights are a direction v_i and
// a length g_i,
//     w_i = g_i * v_i / n_i,   n_i = sqrt(sum of v_i^2 + eps),   eps 0
//   v (out, ...) floating, v_i being v[i]; with `by_column` v (in, out), v_i being column i, as the
//     weights of y = x w;   g (out)
//   outputs: w like v;  rnorm (out) = 1 / n
// backward (Exact), weight_norm_backward (v, g, rnorm, dw), with u_i = v_i / n_i:
//     dg_i = sum of dw_i * u_i;   dv_i = g_i / n_i * (dw_i - u_i * dg_i), for eps 0 orthogonal to
//     v_i
//   outputs: dv like v;  dg (out)
// A v_i that is 0 throughout gives NaN for eps 0.
// errors: rank below 2, or not 2 by_column; g not (out); eps < 0.      in place: dv over dw.
#pragma once

#include "src/ops/norm/batch_norm.h"

namespace keel {

struct WeightNormAttrs {
  bool by_column = false;
  double eps = 0;
  static constexpr auto fields() {
    return std::tuple{field("by_column", &WeightNormAttrs::by_column),
                      field("eps", &WeightNormAttrs::eps)};
  }
};

// v as a tensor (outer, out, inner): the elements of v_i are those of channel i.
ColumnSizes weight_sizes(const Shape& v, const WeightNormAttrs& attrs);

extern const OpInfo kWeightNorm, kWeightNormBackward;

namespace ops {

// Returns w.
Value weight_norm(Graph& g, Value v, Value length, const WeightNormAttrs& attrs = {});

}  // namespace ops
}  // namespace keel
