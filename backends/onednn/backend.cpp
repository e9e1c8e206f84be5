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

// Index tensors (i32, u8) are fine; floating ones must be f32.
std::string first_wide_type(const NodeContext& context) {
  const auto is_refused = [](const TensorType& t) {
    return t.dtype == DType::kF64 || t.dtype == DType::kBF16;
  };
  for (const TensorType& type : context.node.outputs) {
    if (is_refused(type)) return type.text();
  }
  for (int i = 0; i < int(context.node.inputs.size()); ++i) {
    if (context.has(i) && is_refused(context.input(i))) return context.input(i).text();
  }
  return "";
}

}  // namespace

std::string OnednnBackend::description() const {
  return fmt::format("oneDNN {}, {} kernels, {} threads", library_version(), simd_target(),
                     threads_.count());
}

Prepared OnednnBackend::prepare(const NodeContext& context) {
  if (const std::string type = first_wide_type(context); !type.empty()) {
    return refuse(fmt::format("computes in f32 only, got {}; use the reference backend", type));
  }
  return prepare_from(table(), context);
}

void OnednnBackend::run(std::span<const Kernel> kernels) {
  threads_.enter([kernels] {
    for (const Kernel& kernel : kernels) kernel();
  });
}

}  // namespace keel::onednn
