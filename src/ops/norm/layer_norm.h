// Layer normalization over the last `axes` axes (Ba, Kiros, Hinton 2016, eq. 3):
//     y = xhat * gain + bias,   xhat = (x - mean) * rstd,   rstd = 1 / s
// with the mean and s (see NormStatistic; biased, eps 1e-5 inside the root) of one row.
//   x (..., width) floating, width = product of the last `axes` sizes; rows = the others
//   gain, bias: the shape of the last `axes` axes, each present or absent
//   outputs: y like x;  mean (rows);  rstd (rows)
// backward (Exact), layer_norm_backward (x, gain, mean, rstd, dy), with g = dy * gain:
//     dx = rstd * (g - mean(g) - xhat * sum(g * xhat) / N * r),   r = 1, or s / (s - eps) for
//     eps_outside (0 on a constant row);   dgain = sum over rows of dy * xhat;   dbias = sum of dy
//   outputs: dx like x;  dgain, dbias like gain and bias, or (0) when absent
// errors: rank below `axes`; width 0; gain or bias of another shape; eps < 0; unbiased with
// width 1. in place: none forward (x is saved); dx over dy.
#pragma once

#include "src/ops/norm/norm.h"

namespace keel {

struct LayerNormAttrs {
  std::int64_t axes = 1;
  double eps = 1e-5;
  bool unbiased = false, eps_outside = false;
  bool has_bias = false;  // backward only: whether dbias is wanted
  static constexpr auto fields() {
    return std::tuple{field("axes", &LayerNormAttrs::axes), field("eps", &LayerNormAttrs::eps),
                      field("unbiased", &LayerNormAttrs::unbiased),
                      field("eps_outside", &LayerNormAttrs::eps_outside),
                      field("has_bias", &LayerNormAttrs::has_bias)};
  }
  NormStatistic statistic() const { return {eps, unbiased, eps_outside}; }
};

// rows and width of a row norm over the last `axes` axes of x.
struct RowSizes {
  std::int64_t rows, width;
};
RowSizes row_sizes(const Shape& x, std::int64_t axes);

extern const OpInfo kLayerNorm, kLayerNormBackward;

namespace ops {

// Returns y; mean and rstd are outputs 1 and 2.
Value layer_norm(Graph& g, Value x, const NormAffine& affine, const LayerNormAttrs& attrs = {});

}  // namespace ops
}  // namespace keel
