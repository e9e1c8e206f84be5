#include "backends/reference/backend.h"

#include "backends/reference/kernels/kernels.h"
#include "src/runtime/kernel_table.h"

namespace keel::reference {
namespace {

const KernelTable& table() {
  static const KernelTable table = make_kernel_table(
      {
#define X(op, kernel) {#op, prepare_##kernel},
#include "src/runtime/kernel_list.inc"
#undef X
#define X(name, Name) {#name, prepare_##name}, {#name "_backward", prepare_##name##_backward},
#include "norm_list.inc"
#undef X
      },
      prepare_elementwise);
  return table;
}

}  // namespace

std::string ReferenceBackend::description() const {
  return fmt::format("Eigen {}.{}.{}, float64, 1 thread", EIGEN_WORLD_VERSION, EIGEN_MAJOR_VERSION,
                     EIGEN_MINOR_VERSION);
}

Prepared ReferenceBackend::prepare(const NodeContext& context) {
  return prepare_from(table(), context);
}

}  // namespace keel::reference
