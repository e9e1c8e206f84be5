#include "src/ops/norm/norm_ops.h"

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

}  // namespace keel
