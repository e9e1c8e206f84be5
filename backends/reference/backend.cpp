#include "backends/reference/backend.h"

#include <algorithm>

#include "backends/reference/kernels/kernels.h"
#include "src/core/bf16.h"
#include "src/runtime/kernel_table.h"

namespace keel::reference {
namespace {

// prepare() rounds what any of the kernels leaves.
const KernelTypeTable kKernelTypes{.usual = floating_kernel(DType::kF64, true)};

#include "src/runtime/kernel_table.inc"

// The kernel, then output 0 rounded to bf16, though it is stored as double.
Prepared rounded(Prepared prepared) {
  if (!prepared.refusal.empty()) return prepared;
  prepared.bind = [bind = prepared.bind](const Binding& b) -> Kernel {
    return [kernel = bind(b), y = b.outputs[0]] {
      kernel();
      std::transform(y.as<double>(), y.as<double>() + y.elements(), y.as<double>(),
                     rounded_to_bf16);
    };
  };
  return prepared;
}

}  // namespace

std::string ReferenceBackend::description() const {
  return fmt::format("Eigen {}.{}.{}, float64, 1 thread", EIGEN_WORLD_VERSION, EIGEN_MAJOR_VERSION,
                     EIGEN_MINOR_VERSION);
}

bool ReferenceBackend::narrows_result(const NodeContext& context) const {
  return keel::narrows_result(kernel_table(), context);
}

Prepared ReferenceBackend::prepare(const NodeContext& context) {
  Prepared prepared = prepare_from(kernel_table(), *this, context);
  return context.node.is_bf16 ? rounded(std::move(prepared)) : prepared;
}

}  // namespace keel::reference
