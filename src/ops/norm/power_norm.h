// PowerNorm (Shen et al. 2020, algorithm 2): each feature over the rows of a batch is divided by a
// running quadratic mean:   y = xhat * gain + bias,   xhat = x * rstd
//   x, gain, bias, mask: as for pn_v
//   psi2, nu (channels), which start at 1 and 0
//   step i32 (), the number of training forwards so far; it may be absent without a warm-up
//   The states are read before a step and written after it. A batch without a kept row leaves
//   them as they are. The paper has no eps: with eps = 0 a feature that is 0 in a whole batch of
//   the warm-up gives NaN there.
// training, in the t-th forward, t = step + 1, where psi2_B is the mean of x^2 over the batch:
//     rstd = 1 / sqrt(psi2 + eps), or with psi2_B for psi2 while t <= warmup
//     rdx = 1 / sqrt(psi2_B + eps), in mode "paper" rstd;   Gamma = mean of xhat^2
//     psi2' = alpha_f * psi2 + (1 - alpha_f) * psi2_B
//   While t < warmup (as in the release; y uses psi2_B once more, at t = warmup), let c be the
//   cumulative mean psi2 * (t - 1) / t + psi2_B / t. Then psi2' = alpha_f * c + (1 - alpha_f) *
//   psi2_B, and psi2' = c in mode "paper".
// evaluation: rdx = rstd = 1 / sqrt(psi2 + eps); no state changes.
//   outputs, where () is a scalar and (0) an empty tensor: y like x;  rstd, rdx (channels);  Gamma,
//     psi2' (channels);  step' ();  contraction () = max (1 - alpha_b) * Gamma;  nu_max () =
//     max |nu|;  row_rstd (rows, groups)
//   In evaluation Gamma, psi2', step', contraction and nu_max are empty. step' is empty without a
//   step, too, and row_rstd without groups. Each step multiplies nu by 1 - (1 - alpha_b) * Gamma.
//   Where `contraction` > 1 that factor is negative and theorem 4's condition fails; above 2 nu
//   diverges.
// groups > 0: the scaling that the release puts in front of tokens. In all formulas x then stands
//   for z = x * row_rstd, the group_scaling (see there) of input x with scaling_eps. Scaling and
//   norm are one op, so that after the warm-up they can take one pass over x together.
// backward (Surrogate), power_norm_backward (x, gain, rstd, rdx, Gamma, nu, dy, mask, row_rstd),
// with
//   g = dy * gain:
//     dx = rdx * (g - nu * xhat);  with groups this is dz, from which the backward of the scaling
//       makes dx
//     dgain = sum of dy * xhat;   dbias = sum of dy
//     nu' = nu * (1 - (1 - alpha_b) * Gamma) + (1 - alpha_b) * Lambda,   Lambda = mean of g * xhat
//     evaluation: dx = rdx * g; there is no nu'
//   outputs: dx like x;  dgain, dbias like gain and bias, or (0) when absent;  nu' (channels)
//   The backward rule reports nu' as the state's next value (src/autodiff/gradient.h). Where
//   several nodes read one nu, their backwards carry it on from the last node to the first.
// squares, sums: the column_squares and uncentred_gradient_sums, as for pn_v. With pad_stats they
//   also hold the sums over all rows. After the warm-up y and dx do not wait for them. With groups
//   they must be absent: put a group_scaling before a power_norm without groups to use them, which
//   gives the same result up to rounding.
// pad_stats: Gamma and Lambda are means over all rows, those left out by the mask included.
// errors: as for pn_v, with alpha_f and alpha_b for keep; warmup < 0; step not i32 (), or absent
//     with a warm-up; groups < 0, groups that do not divide the channels, groups > 0 with images;
//     squares or sums with groups.
// in place: dx over dy.
#pragma once

#include "src/ops/norm/group_scaling.h"
#include "src/ops/norm/norm.h"

namespace keel {

struct PowerNormInput {
  enum Place : int { kX, kGain, kBias, kPsi2, kNu, kStep, kMask, kSquares };
};
struct PowerNormOutput {
  enum Place : int {
    kY,
    kRstd,
    kRdx,
    kGamma,
    kNextPsi2,
    kNextStep,
    kContraction,
    kNuMax,
    kRowRstd
  };
};
struct PowerNormBackwardInput {
  enum Place : int { kX, kGain, kRstd, kRdx, kGamma, kNu, kDy, kMask, kRowRstd, kSums };
};
struct PowerNormGradient {
  enum Place : int { kDx, kDgain, kDbias, kNextNu };
};

enum class PowerNormMode { kRelease, kPaper };
constexpr auto choice_words(PowerNormMode) {
  return std::to_array<std::string_view>({"release", "paper"});
}

struct PowerNormAttrs {
  PowerNormMode mode = PowerNormMode::kRelease;
  double eps = 1e-5, alpha_f = 0.9, alpha_b = 0.9;
  std::int64_t warmup = 0;
  bool pad_stats = false, training = true;
  std::int64_t groups = 0;
  double scaling_eps = 1e-5;
  static constexpr auto fields() {
    return std::tuple{field("mode", &PowerNormAttrs::mode),
                      field("eps", &PowerNormAttrs::eps),
                      field("alpha_f", &PowerNormAttrs::alpha_f),
                      field("alpha_b", &PowerNormAttrs::alpha_b),
                      field("warmup", &PowerNormAttrs::warmup),
                      field("pad_stats", &PowerNormAttrs::pad_stats),
                      field("training", &PowerNormAttrs::training),
                      field("groups", &PowerNormAttrs::groups),
                      field("scaling_eps", &PowerNormAttrs::scaling_eps)};
  }
  bool is_release() const { return mode == PowerNormMode::kRelease; }
  bool is_scaled() const { return groups > 0; }
};
using PowerNormBackwardAttrs = WithDbias<PowerNormAttrs>;

extern const OpInfo kPowerNorm, kPowerNormBackward;

namespace ops {

struct PowerNormState {
  Value psi2, nu, step, mask, squares = {};  // step, mask and squares may be absent
};
// Returns y. In training, pass psi2' and step' to mark_update.
Value power_norm(Graph& g, Value x, const NormAffine& affine, const PowerNormState& state,
                 const PowerNormAttrs& attrs = {});

}  // namespace ops
}  // namespace keel
