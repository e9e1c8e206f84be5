// Dropout with the mask drawn in registers. The backward is the same map, applied to dy.
#include "src/ops/dropout.h"

#include <cmath>

#include "backends/onednn/kernels/kernels.h"
#include "backends/onednn/philox_stream.h"
#include "backends/onednn/threads.h"

#ifndef KEEL_BACKENDS_ONEDNN_KERNELS_DROPOUT_ONCE_
#define KEEL_BACKENDS_ONEDNN_KERNELS_DROPOUT_ONCE_

namespace keel::onednn {

// Element e is kept when its 24 random bits are `threshold` or more.
struct Mask {
  PhiloxStream stream;
  std::int32_t threshold;
  float factor;
};

}  // namespace keel::onednn

#endif  // KEEL_BACKENDS_ONEDNN_KERNELS_DROPOUT_ONCE_

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/onednn/kernels/dropout.cpp"
#include <hwy/foreach_target.h>

#include "backends/onednn/simd/philox-inl.h"

HWY_BEFORE_NAMESPACE();
namespace keel::onednn {
namespace HWY_NAMESPACE {
namespace {

constexpr std::size_t kDrawn = 4 * kLanes;  // numbers a call of draw gives

// The words of the kLanes blocks from `block` on, in the order of the elements.
HWY_INLINE void draw(const PhiloxStream& stream, std::uint64_t block, std::uint32_t* bits) {
  const auto [w] = philox_words(stream, block);
  hn::StoreInterleaved4(w[0], w[1], w[2], w[3], U(), bits);
}

// y = keep ? x * factor : 0 for the n elements from `first`, a multiple of kDrawn.
void apply(const Mask& mask, std::uint64_t first, const float* x, float* y, std::size_t n) {
  const Ints threshold = hn::Set(Bits(), mask.threshold);
  const Floats factor = splat(mask.factor);
  for (std::size_t i = 0; i < n; i += kDrawn) {
    HWY_ALIGN std::uint32_t bits[kDrawn];
    draw(mask.stream, (first + i) / 4, bits);
    for_lanes(n - i < kDrawn ? n - i : kDrawn, [&](auto part, std::size_t k) HWY_ATTR {
      const auto drawn = hn::ShiftRight<8>(hn::Load(U(), bits + k));
      const auto is_dropped = hn::RebindMask(F(), hn::Lt(hn::BitCast(Bits(), drawn), threshold));
      part.store(hn::IfThenZeroElse(is_dropped, hn::Mul(part.load(x + i + k), factor)), y + i + k);
    });
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace keel::onednn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace keel::onednn {

HWY_EXPORT(apply);

Prepared prepare_dropout(const NodeContext& context) {
  const auto attrs = context.attrs<DropoutAttrs>();
  Mask mask{PhiloxStream::of(attrs.seed, attrs.stream, 0), 0, float(1 / (1 - attrs.p))};
  // uniform(e) >= p, where uniform is the 24 bits times 2^-24.
  mask.threshold = std::int32_t(std::ceil(attrs.p * 0x1p24));
  return kernel_of([mask](const Binding& b) {
    Mask drawn = mask;
    drawn.stream.step = std::uint32_t(*b.inputs[1].as<std::int32_t>());
    const float* x = b.inputs[0].as<float>();
    float* y = b.outputs[0].as<float>();
    parallel_range(b.inputs[0].elements(), kBlockElements,
                   [&](std::int64_t begin, std::int64_t end) {
                     HWY_DYNAMIC_DISPATCH(apply)
                     (drawn, std::uint64_t(begin), x + begin, y + begin, std::size_t(end - begin));
                   });
  });
}

}  // namespace keel::onednn
#endif
