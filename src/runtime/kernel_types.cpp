#include "src/runtime/kernel_types.h"

#include "src/ops/norm/norm_ops.h"
#include "src/ops/norm_noise.h"

namespace keel {
namespace {

constexpr DTypes kFactor = DType::kF32 | DType::kBF16;

// The types of an op of norms: x and dy may be bf16. Output 0 of a norm and of its backward is
// rounded to bf16 where the graph asks for it, and sums are not.
KernelTypes types_of(const OpInfo& op) {
  KernelTypes types{{}, DType::kF32 | DType::kI32, op.outputs != DTypes(DType::kF64)};
  for (const OpInput& input : op.inputs) {
    const bool is_factor = input.name == "x" || input.name == "dy";
    types.inputs.push_back(is_factor ? kFactor : DTypes(DType::kF32));
  }
  return types;
}

}  // namespace

TypesByOp norm_types() {
  TypesByOp types{{"norm_noise", types_of(kNormNoise)},
                  {"norm_noise_backward", types_of(kNormNoiseBackward)}};
  for (const OpInfo* op : norm_ops()) {
    // Weights are float32, and so are their norms and what shards merge.
    if (input_place(*op, "x") == 0) types[op->name] = types_of(*op);
  }
  return types;
}

TypesByOp product_types() {
  const KernelTypes product{{kFactor, kFactor, DType::kF32}, DType::kF32};
  const KernelTypes attention{{kFactor, kFactor, kFactor, DType::kF32}, DType::kF32};
  const KernelTypes relative{
      {kFactor, kFactor, kFactor, kFactor, kFactor, DType::kI32, DType::kF32}, DType::kF32};
  const KernelTypes loss{
      // factors: x, table and clusters
      {kFactor, kFactor, DType::kF32, kFactor, DType::kF32, DType::kI32, DType::kF32},
      DType::kF32};
  return {{"matmul", product},
          {"conv2d", product},
          {"conv2d_backward_input", product},
          {"conv2d_backward_weight", product},
          {"attention", attention},
          {"attention_backward", attention},
          {"relative_attention", relative},
          {"relative_attention_backward", relative},
          {"linear_cross_entropy", loss},
          {"linear_cross_entropy_backward", loss}};
}

TypesByOp mover_types() {
  TypesByOp types;
  for (const char* op : {"cast", "transpose", "slice", "split", "concat", "pad"}) {
    types[op] = floating_kernel(kFactor);
  }
  return types;
}

TypesByOp narrow_types(TypesByOp others) {
  for (TypesByOp types : {product_types(), norm_types(), mover_types()}) {
    others.merge(types);
  }
  return others;
}

}  // namespace keel
