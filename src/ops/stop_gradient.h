// Stop-gradient:  y = x, and no gradient flows back. A view: it never copies.
#pragma once

#include "src/graph/graph.h"

namespace keel {

extern const OpInfo kStopGradient;

namespace ops {

Value stop_gradient(Graph& g, Value x);

}  // namespace ops
}  // namespace keel
