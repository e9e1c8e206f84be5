// Gradient clipping and the guard against gradients that are not finite, as graph nodes.
#pragma once

#include <span>
#include <vector>

#include "src/core/choice.h"
#include "src/ops/row_gradient.h"

namespace keel::optim {

// none; global: g * min(1, c / |all g|); per_tensor: each g * min(1, c / |g|);
// element: each element into [-c, c].
enum class Clipping { kNone, kGlobal, kPerTensor, kElement };
constexpr auto choice_words(Clipping) {
  return std::to_array<std::string_view>({"none", "global", "per_tensor", "element"});
}

struct ClipOptions {
  Clipping kind = Clipping::kNone;
  double limit = 1;  // c > 0
};

// Throws Error{kUsage} naming the option whose value is out of range.
void validate(const ClipOptions& options);

struct Clipped {
  // After per-tensor or element clipping; absent, or rows of a table, if given so.
  std::vector<ParameterGradient> gradients;
  Value scale;  // (): the factor of all of them; NaN if any is not finite
  Value norm;   // (): |all g| before clipping, not finite if any g is not
};

// Gradients may be absent: those of parameters that the loss does not depend on. Rows of a table
// are clipped exactly as the whole gradient is, to the bit.
Clipped clip_gradients(Graph& graph, std::span<const Value> parameters,
                       std::span<const ParameterGradient> gradients, const ClipOptions& options);
// The same for whole gradients.
Clipped clip_gradients(Graph& graph, std::span<const Value> gradients, const ClipOptions& options);

}  // namespace keel::optim
