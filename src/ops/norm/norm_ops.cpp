#include "src/ops/norm/norm_ops.h"

#include <fmt/format.h>

#include "src/ops/column_gradient_sums.h"
#include "src/ops/column_moments.h"

namespace keel {

#define X(name, Name) extern const OpInfo k##Name, k##Name##Backward;
#include "norm_list.inc"
#undef X

std::span<const OpInfo* const> norm_ops() {
  static const OpInfo* const ops[] = {
#define X(name, Name) &k##Name, &k##Name##Backward,
#include "norm_list.inc"
#undef X
      &kColumnMoments, &kColumnSquares,       &kMergeMoments,
      &kMergeSums,     &kCentredGradientSums, &kUncentredGradientSums,
  };
  return ops;
}

std::vector<std::string_view> further_parameters(const OpInfo& norm) {
  std::vector<std::string_view> names;
  for (const OpInfo* op : norm_ops()) {
    if (op->forward != &norm) continue;
    for (const OpInput& input : norm.inputs) {
      const bool is_usual = input.name == "x" || input.name == "gain" || input.name == "bias";
      if (!is_usual && output_place(*op, fmt::format("d{}", input.name)) >= 0) {
        names.push_back(input.name);
      }
    }
  }
  return names;
}

}  // namespace keel
