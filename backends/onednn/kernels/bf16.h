// Conversions between float32 and bf16, and products of bf16 factors on processors without
// instructions for them.
#pragma once

#include "src/core/bf16.h"
#include "src/runtime/backend.h"

namespace keel::onednn {

// Rounds n numbers to the nearest bf16, ties to even; the same bits on every processor.
void round_to_bf16(const float* from, BF16* to, std::int64_t n);
void widen_bf16(const BF16* from, float* to, std::int64_t n);

// How this process runs products of bf16 factors.
enum class Bf16Products {
  kNative,    // by the processor's instructions
  kEmulated,  // the factors become float32, in which their products are exact
  kRefused,
};
// Emulated where KEEL_BF16=emulated is in the environment; else native where the processor has
// AVX512_BF16 or AMX_BF16 and KEEL_ISA allows them; else refused. Throws Error{kUsage} for another
// value of KEEL_BF16.
Bf16Products narrow_products_here();
// Why the node is refused there, and what runs instead.
Prepared refuse_bf16_product(const NodeContext& context);

// The kernel `wide`, which takes float32, for bindings whose bf16 inputs are widened first.
Prepared widening(const NodeContext& context, Prepared wide);

// Prepares the product or convolution of `spec` by `make`, emulated or refused where it is narrow
// and this process cannot run it.
template <class Spec>
Prepared prepare_product(const NodeContext& context, Spec spec, Prepared (*make)(const Spec&)) {
  const auto here = spec.narrow ? narrow_products_here() : Bf16Products::kNative;
  if (here == Bf16Products::kRefused) return refuse_bf16_product(context);
  if (here == Bf16Products::kNative) return make(spec);
  spec.narrow = false;
  return widening(context, make(spec));
}

}  // namespace keel::onednn
