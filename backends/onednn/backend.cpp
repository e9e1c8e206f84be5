#include "backends/onednn/backend.h"

#include "backends/onednn/instruction_set.h"
#include "backends/onednn/kernels/bf16.h"
#include "backends/onednn/kernels/kernels.h"
#include "backends/onednn/primitives.h"
#include "backends/onednn/simd/target.h"
#include "src/runtime/kernel_types.h"

namespace keel::onednn {
namespace {

const KernelTypes kNarrowing = floating_kernel(DType::kF32, true);
const KernelTypes kElementwise{{DType::kF32 | DType::kBF16 | DType::kI32 | DType::kU8},
                               DType::kF32 | DType::kI32 | DType::kU8,
                               true};

const KernelTypeTable kKernelTypes{
    .usual = floating_kernel(DType::kF32),
    .others = narrow_types({{"dropout", kNarrowing}, {"dropout_backward", kNarrowing}}),
    .elementwise = kElementwise};

#include "src/runtime/kernel_table.inc"

}  // namespace

OnednnBackend::OnednnBackend(int threads) : threads_(threads) { limit_instruction_set(); }

std::string OnednnBackend::description() const {
  return fmt::format("oneDNN {}, {} kernels, {} thread{}", library_version(), simd_target(),
                     threads_.count(), threads_.count() == 1 ? "" : "s");
}

std::vector<std::pair<std::string, std::string>> product_facts() {
  const auto bf16 = narrow_products_here();
  return {{"oneDNN", library_version()},
          {"kernels", std::string(simd_target())},
          {"instruction set", fmt::format("{:#x}", effective_instruction_set())},
          {"bf16", bf16 == Bf16Products::kEmulated  ? "emulated"
                   : bf16 == Bf16Products::kRefused ? "refused"
                                                    : "native"}};
}

PackedLayout OnednnBackend::preferred_packing(const NodeContext& context) const {
  return matmul_packing(context);
}

bool OnednnBackend::prefers_loss_step(const NodeContext& context) const {
  return joins_loss(context);
}

bool OnednnBackend::narrows_result(const NodeContext& context) const {
  return keel::narrows_result(kernel_table(), context);
}

Prepared OnednnBackend::prepare(const NodeContext& context) {
  return prepare_from(kernel_table(), *this, context);
}

void OnednnBackend::run(std::span<const Kernel> kernels) {
  threads_.enter([kernels] {
    for (const Kernel& kernel : kernels) kernel();
  });
}

}  // namespace keel::onednn
