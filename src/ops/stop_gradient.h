// Ops that pass a value unchanged and alter its gradient on the way back. Both
// are views: they never copy.
//
//   stop_gradient:  y = x, and no gradient flows back.
//   clip_gradient:  y = x, and dx = min(max(dy, -limit), limit) element by element, NaN staying NaN
//                   (Graves 2013, section 2.1, clips what flows into his LSTMs so).
// x of any type, for clip_gradient floating.      errors: a limit that is not above 0.
#pragma once

#include "src/graph/graph.h"

namespace keel {

struct ClipGradientAttrs {
  double limit = 1;
  static constexpr auto fields() { return std::tuple{field("limit", &ClipGradientAttrs::limit)}; }
};

extern const OpInfo kStopGradient, kClipGradient;

namespace ops {

Value stop_gradient(Graph& g, Value x);
Value clip_gradient(Graph& g, Value x, double limit);

}  // namespace ops
}  // namespace keel
