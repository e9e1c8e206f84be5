// PN-V (Shen et al. 2020, definition 1): batch normalization by only the quadratic mean of each
// feature over the rows of a batch:   y = xhat * gain + bias,   xhat = x * rstd
//   x (rows, channels) tokens, or (n, channels, h, w) images; B elements a feature, B being rows or
//     n * h * w
//   gain, bias, psi2 (channels); gain and bias each present or absent
//   mask u8 (rows) or absent, tokens only: rows with 0 take no part; their y and dx are 0. A batch
//     without a kept row leaves the state as it is.
// training: rstd = 1 / sqrt(psi2_B + eps), where psi2_B is the mean of x^2 over the batch, and
//     psi2' = keep * psi2 + (1 - keep) * psi2_B
//   The state is read before the run and written after it.
// evaluation: rstd = 1 / sqrt(psi2 + eps); the state does not change.
//   outputs: y like x;  rstd (channels);  psi2' (channels), (0) in evaluation
// backward (Exact), pn_v_backward (x, gain, rstd, dy, mask), with g = dy * gain:
//     training    dx = rstd * (g - xhat * mean(g * xhat))
//     evaluation  dx = rstd * g
//     dgain = sum of dy * xhat;   dbias = sum of dy
//   outputs: dx like x;  dgain, dbias like gain and bias, or (0) when absent
// squares: the column_squares of x and mask, or those of several shards merged; absent, the norm
//     forms them itself, to the same bits. So has the backward its sums, the
//     uncentred_gradient_sums (src/ops/column_moments.h). They say what K and B are.
// errors: rank neither 2 nor 4; B = 0; parameters not (channels); a mask not u8 (rows) or with
//     images; eps < 0; keep outside [0, 1]; squares or sums not f64 (3, channels) and
//     (4, channels); squares in evaluation.
// in place: dx over dy; psi2' over psi2.
#pragma once

#include "src/ops/norm/norm.h"

namespace keel {

struct PnVInput {
  enum Place : int { kX, kGain, kBias, kPsi2, kMask, kSquares };
};
struct PnVOutput {
  enum Place : int { kY, kRstd, kNextPsi2 };
};
struct PnVBackwardInput {
  enum Place : int { kX, kGain, kRstd, kDy, kMask, kSums };
};
using PnVGradient = AffineGradient;

struct PnVAttrs {
  double eps = 1e-5, keep = 0.9;
  bool training = true;
  static constexpr auto fields() {
    return std::tuple{field("eps", &PnVAttrs::eps), field("keep", &PnVAttrs::keep),
                      field("training", &PnVAttrs::training)};
  }
};
using PnVBackwardAttrs = WithDbias<PnVAttrs>;

extern const OpInfo kPnV, kPnVBackward;

namespace ops {

// psi2 is the running quadratic mean; the mask and the squares may be absent.
struct PnVState {
  Value psi2, mask, squares = {};
};
// Returns y. In training, pass psi2' to mark_update.
Value pn_v(Graph& g, Value x, const NormAffine& affine, const PnVState& state,
           const PnVAttrs& attrs = {});

}  // namespace ops
}  // namespace keel
