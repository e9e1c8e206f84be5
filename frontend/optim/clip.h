// Gradient clipping and the guard against gradients that are not finite, as graph nodes.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "src/graph/graph.h"

namespace keel::optim {

struct ClipOptions {
  // none; global: g * min(1, c / |all g|); per_tensor: each g * min(1, c / |g|);
  // element: each element into [-c, c].
  std::string kind = "none";
  double limit = 1;  // c > 0
};

// Throws Error{kUsage} for an unknown kind or a limit <= 0.
void validate(const ClipOptions& options);

struct Clipped {
  std::vector<Value> gradients;  // after per-tensor or element clipping; absent where given so
  Value scale;                   // (): what multiplies all of them; NaN if any is not finite
  Value norm;                    // (): |all g| before clipping, not finite if any g is not
};

// Gradients may be absent: of parameters that the loss does not depend on.
Clipped clip_gradients(Graph& graph, std::span<const Value> gradients, const ClipOptions& options);

}  // namespace keel::optim
