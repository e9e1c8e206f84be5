// Weight normalization (Salimans & Kingma 2016): each output unit's weights are a direction v_i and
// a length g_i,
//     w_i = g_i * v_i / n_i,   n_i = sqrt(sum of v_i^2 + eps)
//   v (out, ...) floating, v_i being v[i]; or with `by_column` v (in, out), v_i being column i, as
//     in the weights of y = x w
//   g (out)
//   outputs: w like v;  rstd (out) = 1 / n
// backward (Exact), weight_norm_backward (v, g, rstd, dw), with u_i = v_i / n_i:
//     dg_i = sum of dw_i * u_i;   dv_i = g_i / n_i * (dw_i - u_i * dg_i)
//   outputs: dv like v;  dg (out)
// For eps 0, the default, dv_i is orthogonal to v_i, and a v_i that is 0 throughout gives NaN.
// errors: rank below 2, or not 2 by_column; g not (out); eps < 0.      in place: dv over dw.
#pragma once

#include "src/ops/norm/norm.h"
#include "src/ops/norm/sizes.h"

namespace keel {

struct WeightNormInput {
  enum Place : int { kV, kG };
};
struct WeightNormOutput {
  enum Place : int { kW, kRstd };
};
struct WeightNormBackwardInput {
  enum Place : int { kV, kG, kRstd, kDw };
};
struct WeightNormGradient {
  enum Place : int { kDv, kDg };
};

struct WeightNormAttrs {
  bool by_column = false;
  double eps = 0;
  static constexpr auto fields() {
    return std::tuple{field("by_column", &WeightNormAttrs::by_column),
                      field("eps", &WeightNormAttrs::eps)};
  }
};

// v seen as a tensor (outer, out, inner), whose channel i has the elements of v_i.
ColumnSizes weight_sizes(const Shape& v, const WeightNormAttrs& attrs);

extern const OpInfo kWeightNorm, kWeightNormBackward;

namespace ops {

// Returns w.
Value weight_norm(Graph& g, Value v, Value length, const WeightNormAttrs& attrs = {});

}  // namespace ops
}  // namespace keel
