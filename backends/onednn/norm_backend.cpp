#include "backends/onednn/norm_backend.h"

#include "backends/onednn/kernels/kernels.h"
#include "backends/onednn/simd/target.h"
#include "src/runtime/kernel_types.h"

namespace keel::onednn {
namespace {

#include "src/runtime/norm_table.inc"

}  // namespace

std::string NormBackend::description() const { return fmt::format("{} kernels", simd_target()); }

Prepared NormBackend::prepare(const NodeContext& context) {
  return prepare_from(norm_table(), *this, context);
}

}  // namespace keel::onednn
