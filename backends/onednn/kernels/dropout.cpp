// Dropout with the mask drawn in registers: Philox4x32-10 (src/core/rng.h) for as many counters at
// once as a register has lanes. The backward is the same map, applied to dy.
#include "src/ops/dropout.h"

#include <cmath>

#include "backends/onednn/kernels/kernels.h"
#include "backends/onednn/threads.h"
#include "src/core/rng.h"

#ifndef KEEL_BACKENDS_ONEDNN_KERNELS_DROPOUT_ONCE_
#define KEEL_BACKENDS_ONEDNN_KERNELS_DROPOUT_ONCE_

namespace keel::onednn {

// Element e is kept when its 24 random bits are `threshold` or more.
struct Mask {
  std::uint32_t key[2];
  std::uint32_t stream, step;
  std::int32_t threshold;
  float factor;
};

}  // namespace keel::onednn

#endif  // KEEL_BACKENDS_ONEDNN_KERNELS_DROPOUT_ONCE_

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/onednn/kernels/dropout.cpp"
#include <hwy/foreach_target.h>

#include "backends/onednn/simd/vec.h"

HWY_BEFORE_NAMESPACE();
namespace keel::onednn {
namespace HWY_NAMESPACE {
namespace {

constexpr std::size_t kDrawn = 4 * kLanes;  // numbers a call of draw gives

#if HWY_TARGET == HWY_SCALAR

void draw(const Mask& mask, std::uint64_t block, std::uint32_t* bits) {
  const Philox4 words =
      philox4x32({std::uint32_t(block), std::uint32_t(block >> 32), mask.stream, mask.step},
                 {mask.key[0], mask.key[1]});
  for (std::size_t i = 0; i < kDrawn; ++i) bits[i] = words[i];
}

#else

using U = hn::ScalableTag<std::uint32_t>;
using Words = hn::Vec<U>;
using Wide = hn::RepartitionToWide<U>;

// The halves of the 64-bit products a * factor.
HWY_INLINE void multiply(Words a, Words factor, Words& high, Words& low) {
  const auto even = hn::MulEven(a, factor);
  const auto odd =
      hn::MulEven(hn::BitCast(U(), hn::ShiftRight<32>(hn::BitCast(Wide(), a))), factor);
  high = hn::OddEven(hn::BitCast(U(), odd), hn::BitCast(U(), hn::ShiftRight<32>(even)));
  low = hn::OddEven(hn::BitCast(U(), hn::ShiftLeft<32>(odd)), hn::BitCast(U(), even));
}

// The words of the kLanes blocks from `block`, a multiple of kLanes, in the order of the elements.
HWY_INLINE void draw(const Mask& mask, std::uint64_t block, std::uint32_t* bits) {
  Words c0 = hn::Iota(U(), std::uint32_t(block));
  Words c1 = hn::Set(U(), std::uint32_t(block >> 32));
  Words c2 = hn::Set(U(), mask.stream), c3 = hn::Set(U(), mask.step);
  std::uint32_t k0 = mask.key[0], k1 = mask.key[1];
  for (int round = 0; round < 10; ++round) {
    Words high0, low0, high1, low1;
    multiply(c0, hn::Set(U(), 0xD2511F53u), high0, low0);
    multiply(c2, hn::Set(U(), 0xCD9E8D57u), high1, low1);
    c0 = hn::Xor(hn::Xor(high1, c1), hn::Set(U(), k0));
    c1 = low1;
    c2 = hn::Xor(hn::Xor(high0, c3), hn::Set(U(), k1));
    c3 = low0;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  hn::StoreInterleaved4(c0, c1, c2, c3, U(), bits);
}

#endif

// y = keep ? x * factor : 0 for the n elements from `first`, a multiple of kDrawn.
void apply(const Mask& mask, std::uint64_t first, const float* x, float* y, std::size_t n) {
  const Ints threshold = hn::Set(Bits(), mask.threshold);
  const Floats factor = splat(mask.factor);
  for (std::size_t i = 0; i < n; i += kDrawn) {
    HWY_ALIGN std::uint32_t bits[kDrawn];
    draw(mask, (first + i) / 4, bits);
    for_lanes(n - i < kDrawn ? n - i : kDrawn, [&](auto part, std::size_t k) HWY_ATTR {
      const auto drawn = hn::ShiftRight<8>(hn::Load(hn::RebindToUnsigned<F>(), bits + k));
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
  Mask mask{};
  mask.key[0] = std::uint32_t(attrs.seed);
  mask.key[1] = std::uint32_t(std::uint64_t(attrs.seed) >> 32);
  mask.stream = std::uint32_t(attrs.stream);
  // uniform(e) >= p, where uniform is the 24 bits times 2^-24.
  mask.threshold = std::int32_t(std::ceil(attrs.p * 0x1p24));
  mask.factor = float(1 / (1 - attrs.p));
  return kernel_of([mask](const Binding& b) {
    Mask drawn = mask;
    drawn.step = std::uint32_t(*b.inputs[1].as<std::int32_t>());
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
