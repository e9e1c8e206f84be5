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

// The sum of squares of a gradient. If the gradient is rows of a table, the table's shape gives
// their number in the whole.
Value squares_of(Graph& graph, Value parameter, const ParameterGradient& gradient) {
  if (!gradient.is_rows()) return ops::sum_squares(graph, gradient);
  return ops::sum_squares(graph, gradient, gradient.ids, graph.shape(parameter)[0]);
}

}  // namespace

void validate(const ClipOptions& options) {
  check(options.limit > 0 && std::isfinite(options.limit), ErrorKind::kUsage,
        "clip_limit: expected > 0, got {}", options.limit);
}

Clipped clip_gradients(Graph& graph, std::span<const Value> parameters,
                       std::span<const ParameterGradient> gradients, const ClipOptions& options) {
  const auto scope = graph.scope("clip");
  Clipped result;
  std::vector<Value> all_squares;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    ParameterGradient g = gradients[i];
    if (g.valid()) {
      const Value squares = squares_of(graph, parameters[i], g);
      all_squares.push_back(squares);
      if (options.kind == Clipping::kPerTensor) {
        const Value factor = shrink_factor(graph, ops::sqrt(graph, squares), options.limit);
        g = {ops::mul(graph, g, factor), g.ids};
      }
      if (options.kind == Clipping::kElement) g = {clamp(graph, g, options.limit), g.ids};
    }
    result.gradients.push_back(g);
  }
  result.norm = all_squares.empty() ? graph.constant(0.0) : ops::total_norm(graph, all_squares);
  // 0 * norm + 1 is 1, or NaN when a gradient is not finite: the update nodes then do nothing.
  result.scale = ops::scale(graph, result.norm, 0, 1);
  if (options.kind == Clipping::kGlobal) {
    result.scale = ops::mul(graph, result.scale, shrink_factor(graph, result.norm, options.limit));
  }
  return result;
}

Clipped clip_gradients(Graph& graph, std::span<const Value> gradients, const ClipOptions& options) {
  const std::vector<ParameterGradient> whole(gradients.begin(), gradients.end());
  return clip_gradients(graph, gradients, whole, options);
}

}  // namespace keel::optim
