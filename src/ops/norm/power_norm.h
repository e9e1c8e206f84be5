// PowerNorm (Shen et al. 2020, algorithm 2): each feature over the rows of a batch is divided by a
// running quadratic mean:   y = xhat * gain + bias,   xhat = x * rpsi
//   x, gain, bias, mask as for pn_v;  psi2 (starts at 1), nu (0): (channels);  step i32 () (0): how
//   many training forwards there were, absent without a warm-up. State is read before and written
//   after, once a run. With no row left by the mask no state changes. The paper has no eps: with
//   eps = 0 a feature that is 0 in a whole batch of the warm-up gives NaN there.
// training: t = step + 1, psi2_B = mean of x^2 over the batch,
//     rpsi = 1 / sqrt(psi2 + eps), or of psi2_B while t <= warmup;
//     while t < warmup first   psi2 <- psi2 * (t - 1) / t + psi2_B / t   (the cumulative mean),
//     then   psi2' = alpha_f * psi2 + (1 - alpha_f) * psi2_B;
//     mode "paper" leaves the second line out while t < warmup;
//     rdx = 1 / sqrt(psi2_B + eps), in mode "paper" rpsi;   Gamma = mean of xhat^2.
// evaluation: rdx = rpsi = 1 / sqrt(psi2 + eps); no state changes.
//   outputs: y like x;  rpsi, rdx (channels);  in training, else (0):  Gamma (channels), psi2',
//     step' ((0) too without step),  contraction () = max (1 - alpha_b) * Gamma,  nu_max () =
//     max |nu|. Where contraction > 1 the recursion of nu is no contraction; above 2 it diverges.
//     With groups:  rrms (rows, groups), else (0).
// groups > 0: the release's scaling in front, of tokens: in all formulas x stands for z = x * rrms,
//   the group_scaling (see there) of input x with scaling_eps. One op, so that behind the warm-up
//   both together can take one pass over x.
// backward (Surrogate), power_norm_backward (x, gain, rpsi, rdx, Gamma, nu, dy, mask, rrms),
//   g = dy * gain:
//     dx = rdx * (g - nu * xhat), with groups that of z, from there through the scaling to x's;
//     dgain = sum of dy * xhat;   dbias = sum of dy
//     nu' = nu * (1 - (1 - alpha_b) * Gamma) + (1 - alpha_b) * Lambda,   Lambda = mean of g * xhat
//     evaluation: dx = rdx * g, no nu'
//   outputs: dx like x;  dgain, dbias like gain and bias, or (0) when absent;  nu' (channels)
//   The backward rule reports nu' as the state's next value (src/autodiff/gradient.h). Where
//   several nodes read one nu, their backwards carry it on from the last node to the first.
// pad_stats: Gamma and Lambda are means over all rows, those left out by the mask included.
// errors: as for pn_v (alpha_f, alpha_b in [0, 1]); warmup < 0; step not
//     i32 (), or absent with a warm-up; groups < 0, no divisor of the channels, or of images.
// in place: dx over dy.
#pragma once

#include "src/ops/norm/group_scaling.h"
#include "src/ops/norm/pn_v.h"

namespace keel {

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
  bool has_bias = false;  // backward only: whether dbias is wanted
  static constexpr auto fields() {
    return std::tuple{field("mode", &PowerNormAttrs::mode),
                      field("eps", &PowerNormAttrs::eps),
                      field("alpha_f", &PowerNormAttrs::alpha_f),
                      field("alpha_b", &PowerNormAttrs::alpha_b),
                      field("warmup", &PowerNormAttrs::warmup),
                      field("pad_stats", &PowerNormAttrs::pad_stats),
                      field("training", &PowerNormAttrs::training),
                      field("groups", &PowerNormAttrs::groups),
                      field("scaling_eps", &PowerNormAttrs::scaling_eps),
                      field("has_bias", &PowerNormAttrs::has_bias)};
  }
  bool is_release() const { return mode == PowerNormMode::kRelease; }
  bool is_scaled() const { return groups > 0; }
};

extern const OpInfo kPowerNorm, kPowerNormBackward;

namespace ops {

struct PowerNormState {
  Value psi2, nu, step, mask;  // step and mask may be absent
};
// Returns y; in training psi2' and step' are outputs 4 and 5, for mark_update; contraction and
// nu_max are outputs 6 and 7.
Value power_norm(Graph& g, Value x, const NormAffine& affine, const PowerNormState& state,
                 const PowerNormAttrs& attrs = {});

}  // namespace ops
}  // namespace keel
