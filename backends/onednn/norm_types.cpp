#include "backends/onednn/norm_types.h"

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

namespace keel::onednn {
namespace {

// The types of an op whose inputs have these places: x comes first, dy perhaps later.
// `narrows`: output 0 is rounded to bf16 where the graph asks for it.
template <class Inputs>
KernelTypes types_of(bool narrows = true) {
  constexpr DTypes kRead = DType::kF32 | DType::kBF16;
  std::vector<DTypes> inputs{kRead, DType::kF32};
  if constexpr (requires { Inputs::kDy; }) {
    inputs.resize(std::size_t(Inputs::kDy) + 2, DType::kF32);  // the last stands for all after it
    inputs[std::size_t(Inputs::kDy)] = kRead;
  }
  return {inputs, DType::kF32 | DType::kI32, narrows};
}

}  // namespace

std::map<std::string_view, KernelTypes> norm_types() {
  std::map<std::string_view, KernelTypes> types{
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

}  // namespace keel::onednn
