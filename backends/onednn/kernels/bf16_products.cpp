// Products of bf16 factors, by the processor's instructions or in float32.
#include <cstdlib>
#include <string_view>

#include "backends/onednn/blocks.h"
#include "backends/onednn/instruction_set.h"
#include "backends/onednn/kernels/bf16.h"

namespace keel::onednn {

Bf16Products narrow_products_here() {
  const char* word = std::getenv("KEEL_BF16");
  const std::string_view wanted = word == nullptr ? "" : word;
  if (wanted == "emulated") return Bf16Products::kEmulated;
  check(wanted.empty() || wanted == "native", ErrorKind::kUsage,
        "KEEL_BF16: expected native or emulated, got '{}'", wanted);
  return has_bf16_instructions() ? Bf16Products::kNative : Bf16Products::kRefused;
}

Prepared refuse_bf16_product(const NodeContext& context) {
  const OpInfo& op = *context.node.op;
  return refuse(fmt::format(
      "[{}] {}: the kernel of onednn takes bf16 only with AVX512_BF16 or AMX_BF16, which this "
      "processor lacks or KEEL_ISA forbids; train.compute = f32 runs here, and KEEL_BF16=emulated "
      "or the backend reference compute the same result slowly",
      op.name, input_name(op, 0)));
}

Prepared widening(const NodeContext& context, Prepared wide) {
  if (!wide.refusal.empty()) return wide;
  struct Widened {
    std::size_t input;
    std::int64_t offset;  // of the float32 copy in the workspace
  };
  std::vector<Widened> widened;
  std::int64_t workspace = aligned_size(wide.workspace);
  for (int i = 0; i < int(context.node.inputs.size()); ++i) {
    if (!context.has(i) || context.input(i).dtype != DType::kBF16) continue;
    widened.push_back({std::size_t(i), workspace});
    workspace += aligned_size(4 * context.input(i).shape.elements());
  }
  if (widened.empty()) return wide;
  auto bind = [widened, inner = std::move(wide.bind)](const Binding& b) -> Kernel {
    Binding floats = b;
    for (const Widened& w : widened) {
      floats.inputs[w.input].data = static_cast<std::byte*>(b.workspace) + w.offset;
      floats.inputs[w.input].type.dtype = DType::kF32;
    }
    return [widened, b, floats, run = inner(floats)] {
      for (const Widened& w : widened) {
        const TensorRef &from = b.inputs[w.input], &to = floats.inputs[w.input];
        parallel_range(from.elements(), kBlockElements, [&](std::int64_t begin, std::int64_t end) {
          widen_bf16(from.as<BF16>() + begin, to.as<float>() + begin, end - begin);
        });
      }
      run();
    };
  };
  return {bind, workspace, {}, wide.holds + std::int64_t(2 * sizeof(Binding))};
}

}  // namespace keel::onednn
