#include "backends/onednn/norm_backend.h"

#include "backends/onednn/kernels/kernels.h"
#include "backends/onednn/simd/target.h"
#include "src/runtime/kernel_types.h"

namespace keel::onednn {
namespace {

#include "src/runtime/norm_table.inc"

// The norms, and the sum before a norm or after its backward.
const KernelTable& table_with_sum() {
  static const KernelTable table = [] {
    KernelTable rows = norm_table();
    rows[elementwise_op(EwCode::kAdd).name] = {prepare_elementwise,
                                               floating_kernel(DType::kF32 | DType::kBF16)};
    return rows;
  }();
  return table;
}

}  // namespace

std::string NormBackend::description() const { return fmt::format("{} kernels", simd_target()); }

Prepared NormBackend::prepare(const NodeContext& context) {
  return prepare_from(table_with_sum(), *this, context);
}

}  // namespace keel::onednn
