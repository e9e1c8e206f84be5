// Negative log density of handwriting points under a mixture of M normal distributions of the plane
// and a Bernoulli distribution (Graves 2013, eq. 18 to 26), and its gradient.
//
// A row of y is e^, then M each of p^, m1, m2, s1^, s2^, r^:
//   e = 1 / (1 + exp(e^))    pi = softmax(p^)    mu = m    sigma = exp(s^)    rho = tanh(r^)
//   nll = -log sum_j pi_j N(x1, x2; mu_j, sigma_j, rho_j) - log(x3 ? e : 1 - e)
//   log N = -log(2 pi sigma1 sigma2 sqrt(1 - rho^2)) - Z / (2 (1 - rho^2))
//   Z = a^2 + b^2 - 2 rho a b,   a = (x1 - mu1) / sigma1,   b = (x2 - mu2) / sigma2
// Points are differences of integers, so many are equal, and the density of a component at such a
// point is unbounded. Therefore s^ below least_log_sigma is replaced by that bound, and r^ is
// clamped to +-largest_rho. `held` counts these cases.
//
//   y (n, 1 + 6 M) floating   points (n, 3) like y: x1, x2, x3 = 0 or 1
//   mask u8 (n) or absent: where it is 0 nll and held are 0, whatever y and the point are
//   outputs: nll (n), held (n), which has no gradient
// backward, with g = dnll, gamma_j the share of component j in the density, C = 1 / (1 - rho^2):
//   de^ = g (x3 - e)    dp^ = g (pi - gamma)    dm1 = -g gamma (C / sigma1) (a - rho b)
//   ds1^ = -g gamma (C a (a - rho b) - 1)       dr^ = -g gamma (a b + rho (1 - C Z))
// The formulas for 2 are alike. A clamped value has gradient 0. Points have no gradient.
// errors: a width that is not 1 + 6 M; inputs that do not fit each other.
#pragma once

#include "src/graph/graph.h"

namespace keel {

// Inputs and outputs have these places; the backward has the inputs of the forward and dnll.
struct MixtureInput {
  enum Place : int { kY, kPoints, kMask, kDnll };
};
struct MixtureOutput {
  enum Place : int { kNll, kHeld };
};

// Offsets of the parts of a row of y, in multiples of M after the first number.
struct MixturePart {
  enum Place : int { kPi, kMean1, kMean2, kSigma1, kSigma2, kRho, kCount };
};

struct MixtureAttrs {
  double least_log_sigma = -7, largest_rho = 8;
  static constexpr auto fields() {
    return std::tuple{field("least_log_sigma", &MixtureAttrs::least_log_sigma),
                      field("largest_rho", &MixtureAttrs::largest_rho)};
  }
};

struct MixtureSizes {
  std::int64_t rows, components;
};
MixtureSizes mixture_sizes(const Shape& y);

extern const OpInfo kMixtureDensity;
extern const OpInfo kMixtureDensityBackward;  // (y, points, mask, dnll) -> dy

namespace ops {

struct Mixture {
  Value nll, held;
};
Mixture mixture_density(Graph& g, Value y, Value points, Value mask = {},
                        const MixtureAttrs& attrs = {});

}  // namespace ops
}  // namespace keel
