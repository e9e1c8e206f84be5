#include "src/runtime/kernel_types.h"

#include "src/ops/column_gradient_sums.h"
#include "src/ops/column_moments.h"
#include "src/ops/norm/ada_norm.h"
#include "src/ops/norm/batch_norm.h"
#include "src/ops/norm/batch_renorm.h"
#include "src/ops/norm/detach_norm.h"
#include "src/ops/norm/group_norm.h"
#include "src/ops/norm/group_scaling.h"
#include "src/ops/norm/instance_norm.h"
#include "src/ops/norm/layer_norm.h"
#include "src/ops/norm/mabn.h"
#include "src/ops/norm/pn_v.h"
#include "src/ops/norm/power_norm.h"
#include "src/ops/norm/rms_norm.h"
#include "src/ops/norm/scale_norm.h"
#include "src/ops/norm/weight_norm.h"
#include "src/ops/norm_noise.h"

namespace keel {
namespace {

constexpr DTypes kFactor = DType::kF32 | DType::kBF16;

// The types of an op whose inputs have these places: x comes first, dy perhaps later.
// `narrows`: output 0 is rounded to bf16 where the graph asks for it.
template <class Inputs>
KernelTypes types_of(bool narrows = true) {
  std::vector<DTypes> inputs{kFactor, DType::kF32};
  if constexpr (requires { Inputs::kDy; }) {
    inputs.resize(std::size_t(Inputs::kDy) + 2, DType::kF32);  // the last stands for all after it
    inputs[std::size_t(Inputs::kDy)] = kFactor;
  }
  return {inputs, DType::kF32 | DType::kI32, narrows};
}

}  // namespace

TypesByOp norm_types() {
  TypesByOp types{
#define X(name, Name) \
  {#name, types_of<Name##Input>()}, {#name "_backward", types_of<Name##BackwardInput>()},
#include "norm_list.inc"
#undef X
      {"norm_noise", types_of<NormNoiseInput>()},
      {"norm_noise_backward", types_of<NormNoiseInput>()},
      {"column_moments", types_of<ColumnMomentsInput>(false)},
      {"column_squares", types_of<ColumnMomentsInput>(false)},
      {"centred_gradient_sums", types_of<CentredSumsInput>(false)},
      {"uncentred_gradient_sums", types_of<UncentredSumsInput>(false)}};
  // Weights are float32, and so is what they are normalized to.
  for (const char* op : {"weight_norm", "weight_norm_backward"}) types.erase(op);
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
