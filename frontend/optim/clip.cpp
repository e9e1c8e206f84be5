#include "frontend/optim/clip.h"

#include <algorithm>
#include <cmath>

#include "src/ops/elementwise.h"
#include "src/ops/optimizer_step.h"

namespace keel::optim {
namespace {

// min(1, limit / norm)
Value shrink_factor(Graph& g, Value norm, double limit) {
  const DType dtype = g.type(norm).dtype;
  return ops::minimum(g, g.constant(1, dtype), ops::div(g, g.constant(limit, dtype), norm));
}

Value clamp(Graph& g, Value x, double limit) {
  const DType dtype = g.type(x).dtype;
  return ops::maximum(g, ops::minimum(g, x, g.constant(limit, dtype)), g.constant(-limit, dtype));
}

}  // namespace

void validate(const ClipOptions& options) {
  check(options.limit > 0 && std::isfinite(options.limit), ErrorKind::kUsage,
        "clip_limit: expected > 0, got {}", options.limit);
}

Clipped clip_gradients(Graph& graph, std::span<const Value> gradients, const ClipOptions& options) {
  const auto scope = graph.scope("clip");
  Clipped result;
  Value total;
  for (Value g : gradients) {
    if (!g.valid()) {
      result.gradients.push_back(g);
      continue;
    }
    const Value squares = ops::sum_squares(graph, g);
    total = total.valid() ? ops::add(graph, total, squares) : squares;
    if (options.kind == Clipping::kPerTensor) {
      g = ops::mul(graph, g, shrink_factor(graph, ops::sqrt(graph, squares), options.limit));
    }
    result.gradients.push_back(options.kind == Clipping::kElement ? clamp(graph, g, options.limit)
                                                                  : g);
  }
  result.norm = total.valid() ? ops::sqrt(graph, total) : graph.constant(0.0);
  // 0 * norm + 1 is 1, or NaN when a gradient is not finite: the update nodes then do nothing.
  result.scale = ops::scale(graph, result.norm, 0, 1);
  if (options.kind == Clipping::kGlobal) {
    result.scale = ops::mul(graph, result.scale, shrink_factor(graph, result.norm, options.limit));
  }
  return result;
}

}  // namespace keel::optim
