// Registers of floats rounded to bf16, compiled once per instruction set.
#if defined(KEEL_BACKENDS_ONEDNN_SIMD_ROUNDED_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KEEL_BACKENDS_ONEDNN_SIMD_ROUNDED_INL_H_
#undef KEEL_BACKENDS_ONEDNN_SIMD_ROUNDED_INL_H_
#else
#define KEEL_BACKENDS_ONEDNN_SIMD_ROUNDED_INL_H_
#endif

#include "backends/onednn/simd/vec.h"

HWY_BEFORE_NAMESPACE();
namespace keel::onednn {
namespace HWY_NAMESPACE {

// The bits of each number rounded to bf16, in the lower half of its lane. The sum carries into the
// upper half where the lower one is above a half, or is a half and the upper half odd.
HWY_INLINE Words rounded_bits(Floats v) {
  const Words bits = hn::BitCast(U(), v);
  const Words odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(U(), 1));
  const Words rounded = hn::Add(bits, hn::Add(odd, hn::Set(U(), 0x7fff)));
  const Words quiet = hn::Or(bits, hn::Set(U(), 0x400000));
  return hn::ShiftRight<16>(hn::IfThenElse(hn::RebindMask(U(), hn::IsNaN(v)), quiet, rounded));
}

HWY_INLINE hn::Vec<Half> halves_of(Words bits) {
  return hn::DemoteTo(Half(), hn::BitCast(Bits(), bits));
}

HWY_INLINE void store_bits(Words bits, BF16* to) {
  hn::StoreU(halves_of(bits), Half(), reinterpret_cast<std::uint16_t*>(to));
}

// Stores numbers rounded to bf16: a whole register, or its first lanes.
HWY_INLINE void store_rounded(Whole, Floats v, BF16* to) { store_bits(rounded_bits(v), to); }
HWY_INLINE void store_rounded(First part, Floats v, BF16* to) {
  BF16 all[kLanes];
  store_bits(rounded_bits(v), all);
  copy_few(all, part.count(), to);
}

// Stores a whole register rounded to bf16 past the caches; `to` lies at a multiple of its bytes.
HWY_INLINE void stream_rounded(Floats v, BF16* to) {
  // Highway writes 16 bytes at the least.
  if constexpr (kLanes * sizeof(BF16) < 16) return store_rounded(Whole{}, v, to);
  hn::Stream(halves_of(rounded_bits(v)), Half(), reinterpret_cast<std::uint16_t*>(to));
}

}  // namespace HWY_NAMESPACE
}  // namespace keel::onednn
HWY_AFTER_NAMESPACE();

#endif  // toggled guard
