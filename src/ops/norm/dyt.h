// Dynamic tanh, which stands in place of a norm (Zhu, Chen, He, LeCun, Liu 2025):
//     y = gain * t + bias,   t = tanh(alpha * x)
// It has no statistics: an element of y depends on one of x. There is one alpha for all elements,
// which the authors start at 0.5.
//   x (..., width) floating; width is the product of the last `axes` sizes, rows that of the others
//   gain, bias: the shape of the last `axes` axes, each present or absent
//   alpha (1)
//   outputs: y like x
// backward (Exact), dyt_backward (x, gain, alpha, dy), with k = dy * gain * (1 - t^2):
//     dx = alpha * k
//     dgain = sum over rows of dy * t;   dbias = sum over rows of dy
//     dalpha = sum over all elements of k * x
//   outputs: dx like x;  dgain, dbias like gain and bias, or (0) when absent;  dalpha (1)
// errors: rank below `axes`; width 0; gain, bias or alpha of another shape; no alpha.
// in place: dx over dy. y is not written over x, which the backward reads.
#pragma once

#include "src/ops/norm/norm.h"

namespace keel {

struct DytInput {
  enum Place : int { kX, kGain, kBias, kAlpha };
};
using DytOutput = NormOutput;
struct DytBackwardInput {
  enum Place : int { kX, kGain, kAlpha, kDy };
};
struct DytGradient {
  enum Place : int { kDx, kDgain, kDbias, kDalpha };
};

struct DytAttrs {
  std::int64_t axes = 1;
  static constexpr auto fields() { return std::tuple{field("axes", &DytAttrs::axes)}; }
};
using DytBackwardAttrs = WithDbias<DytAttrs>;

extern const OpInfo kDyt, kDytBackward;

namespace ops {

// Returns y.
Value dyt(Graph& g, Value x, const NormAffine& affine, Value alpha, const DytAttrs& attrs = {});

}  // namespace ops
}  // namespace keel
