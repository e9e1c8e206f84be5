#include "backends/reference/backend.h"

#include "backends/reference/kernels/kernels.h"
#include "src/runtime/kernel_table.h"

namespace keel::reference {
namespace {

const KernelTypeTable kKernelTypes{.usual = floating_kernel(DType::kF64)};

#include "src/runtime/kernel_table.inc"

}  // namespace

std::string ReferenceBackend::description() const {
  return fmt::format("Eigen {}.{}.{}, float64, 1 thread", EIGEN_WORLD_VERSION, EIGEN_MAJOR_VERSION,
                     EIGEN_MINOR_VERSION);
}

Prepared ReferenceBackend::prepare(const NodeContext& context) {
  return prepare_from(kernel_table(), *this, context);
}

}  // namespace keel::reference
