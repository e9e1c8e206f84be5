#include "backends/onednn/backend.h"

#include "backends/onednn/kernels/kernels.h"
#include "backends/onednn/primitives.h"
#include "backends/onednn/simd/target.h"
#include "src/runtime/kernel_table.h"

namespace keel::onednn {
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

std::string OnednnBackend::description() const {
  return fmt::format("oneDNN {}, {} kernels, {} threads", library_version(), simd_target(),
                     threads_.count());
}

Prepared OnednnBackend::prepare(const NodeContext& context) {
  return prepare_f32_from(table(), context);
}

void OnednnBackend::run(std::span<const Kernel> kernels) {
  threads_.enter([kernels] {
    for (const Kernel& kernel : kernels) kernel();
  });
}

}  // namespace keel::onednn
