// Dynamic erf, which stands in place of a norm (Chen, Lu, Zhu, Sun, Liu 2025):
//     y = gain * f + bias,   f = erf(u),   u = alpha * x + shift
// It has no statistics: an element of y depends on one of x. There are one alpha and one shift for
// all elements, which the authors start at 0.5 and 0.
//   x (..., width) floating; width is the product of the last `axes` sizes, rows that of the others
//   gain, bias: the shape of the last `axes` axes, each present or absent
//   alpha (1);  shift (1), or absent
//   outputs: y like x
// backward (Exact), derf_backward (x, gain, alpha, shift, dy), with
// k = dy * gain * exp(-u^2) * 2 / sqrt(pi):
//     dx = alpha * k
//     dgain = sum over rows of dy * f;   dbias = sum over rows of dy
//     dalpha = sum over all elements of k * x;   dshift = sum over all elements of k
//   outputs: dx like x;  dgain, dbias, dalpha, dshift like their inputs, or (0) when absent
// errors: rank below `axes`; width 0; gain, bias, alpha or shift of another shape; no alpha.
// in place: dx over dy. y is not written over x, which the backward reads.
#pragma once

#include "src/ops/norm/norm.h"

namespace keel {

struct DerfInput {
  enum Place : int { kX, kGain, kBias, kAlpha, kShift };
};
using DerfOutput = NormOutput;
struct DerfBackwardInput {
  enum Place : int { kX, kGain, kAlpha, kShift, kDy };
};
struct DerfGradient {
  enum Place : int { kDx, kDgain, kDbias, kDalpha, kDshift };
};

struct DerfAttrs {
  std::int64_t axes = 1;
  static constexpr auto fields() { return std::tuple{field("axes", &DerfAttrs::axes)}; }
};
using DerfBackwardAttrs = WithDbias<DerfAttrs>;

extern const OpInfo kDerf, kDerfBackward;

namespace ops {

// The numbers of the curve; the shift may be absent.
struct DerfCurve {
  Value alpha, shift;
};

// Returns y.
Value derf(Graph& g, Value x, const NormAffine& affine, const DerfCurve& curve,
           const DerfAttrs& attrs = {});

}  // namespace ops
}  // namespace keel
