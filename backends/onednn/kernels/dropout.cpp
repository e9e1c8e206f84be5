// Dropout with the mask sampled in registers. The backward is the same map, applied to dy.
#include "src/ops/dropout.h"

#include <cmath>

#include "backends/onednn/kernels/kernels.h"
#include "backends/onednn/random_rows.h"

#ifndef KEEL_BACKENDS_ONEDNN_KERNELS_DROPOUT_ONCE_
#define KEEL_BACKENDS_ONEDNN_KERNELS_DROPOUT_ONCE_

namespace keel::onednn {

// An element is kept when its 24 random bits are `threshold` or more.
struct Dropout {
  std::int32_t threshold;
  float factor;
};

}  // namespace keel::onednn

#endif  // KEEL_BACKENDS_ONEDNN_KERNELS_DROPOUT_ONCE_

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/onednn/kernels/dropout.cpp"
#include <hwy/foreach_target.h>

#include "backends/onednn/simd/bf16-inl.h"
#include "backends/onednn/simd/random_rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace keel::onednn {
namespace HWY_NAMESPACE {
namespace {

template <class Part>
HWY_INLINE void put(Part part, Floats v, float* to) {
  part.store(v, to);
}
template <class Part>
HWY_INLINE void put(Part part, Floats v, BF16* to) {
  store_rounded(part, v, to);
}

// y = keep ? x * factor : 0 for the elements of blocks [begin, end).
template <class T>
void apply_to(const Binding& b, const Dropout& op, const RandomRows& sampled, std::int64_t begin,
              std::int64_t end) {
  const Ints threshold = hn::Set(Bits(), op.threshold);
  const Floats factor = splat(op.factor);
  const float* const x = b.inputs[DropoutInput::kX].as<float>();
  T* const y = b.outputs[0].as<T>();
  const auto interleave = [](const PhiloxWords& words, std::uint32_t* bits) KEEL_LOOP_BODY {
    hn::StoreInterleaved4(words.w[0], words.w[1], words.w[2], words.w[3], U(), bits);
  };
  const auto keep = [&](std::int64_t first, const std::uint32_t* bits,
                        std::size_t n) KEEL_LOOP_BODY {
    for_lanes(n, [&](auto part, std::size_t k) KEEL_LOOP_BODY {
      const auto sampled = hn::ShiftRight<8>(part.load(bits + k));
      const auto is_dropped = hn::RebindMask(F(), hn::Lt(hn::BitCast(Bits(), sampled), threshold));
      const std::size_t at = std::size_t(first) + k;
      put(part, hn::IfThenZeroElse(is_dropped, hn::Mul(part.load(x + at), factor)), y + at);
    });
  };
  each_sampled<4, std::uint32_t>(sampled, begin, end, interleave, keep);
}

void apply(const Binding& b, const Dropout& op, const RandomRows& sampled, std::int64_t begin,
           std::int64_t end) {
  const bool is_narrow = b.outputs[0].type.dtype == DType::kBF16;
  is_narrow ? apply_to<BF16>(b, op, sampled, begin, end)
            : apply_to<float>(b, op, sampled, begin, end);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace keel::onednn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace keel::onednn {

HWY_EXPORT(apply);

Prepared prepare_dropout(const NodeContext& context) {
  using In = DropoutInput;
  const auto attrs = context.attrs<DropoutAttrs>();
  // An element is kept when uniform >= p, where uniform is the 24 bits times 2^-24.
  const Dropout op{std::int32_t(std::ceil(attrs.p * 0x1p24)), float(1 / (1 - attrs.p))};
  const auto run = [op](const Binding& b, const RandomRows& sampled, std::int64_t begin,
                        std::int64_t end) {
    HWY_DYNAMIC_DISPATCH(apply)(b, op, sampled, begin, end);
  };
  return by_sampled_rows<In>(attrs, sampled_rows(context.input(In::kX).shape), 4, run);
}

}  // namespace keel::onednn
#endif
