#include "backends/onednn/norm_backend.h"

#include "backends/onednn/kernels/kernels.h"
#include "backends/onednn/simd/target.h"
#include "src/ops/column_gradient_sums.h"
#include "src/ops/column_moments.h"
#include "src/runtime/kernel_table.h"

namespace keel {

#define X(name, Name) extern const OpInfo k##Name, k##Name##Backward;
#include "norm_list.inc"
#undef X

namespace onednn {
namespace {

struct Row {
  const OpInfo* op;
  Prepare prepare;
};

const Row kRows[] = {
#define X(name, Name) {&k##Name, prepare_##name}, {&k##Name##Backward, prepare_##name##_backward},
#include "norm_list.inc"
#undef X
    {&kColumnMoments, prepare_column_moments},
    {&kColumnSquares, prepare_column_squares},
    {&kMergeMoments, prepare_merge_moments},
    {&kMergeSums, prepare_merge_sums},
    {&kCentredGradientSums, prepare_centred_gradient_sums},
    {&kUncentredGradientSums, prepare_uncentred_gradient_sums},
};

const KernelTable& table() {
  static const KernelTable rows = [] {
    KernelTable made;
    for (const Row& row : kRows) {
      made[row.op->name] = {row.prepare, floating_kernel(DType::kF32)};
    }
    return made;
  }();
  return rows;
}

}  // namespace

std::string NormBackend::description() const { return fmt::format("{} kernels", simd_target()); }

Prepared NormBackend::prepare(const NodeContext& context) {
  return prepare_from(table(), *this, context);
}

std::span<const OpInfo* const> norm_ops() {
  static const std::vector<const OpInfo*> ops = [] {
    std::vector<const OpInfo*> list;
    for (const Row& row : kRows) list.push_back(row.op);
    return list;
  }();
  return ops;
}

}  // namespace onednn
}  // namespace keel
