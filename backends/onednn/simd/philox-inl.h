// Philox4x32-10 (src/core/rng.h) for as many counters at once as a register has lanes, compiled
// once per instruction set, and normal numbers from its words.
#if defined(KEEL_BACKENDS_ONEDNN_SIMD_PHILOX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KEEL_BACKENDS_ONEDNN_SIMD_PHILOX_INL_H_
#undef KEEL_BACKENDS_ONEDNN_SIMD_PHILOX_INL_H_
#else
#define KEEL_BACKENDS_ONEDNN_SIMD_PHILOX_INL_H_
#endif

#include "backends/onednn/philox_stream.h"
#include "backends/onednn/simd/math.h"

HWY_BEFORE_NAMESPACE();
namespace keel::onednn {
namespace HWY_NAMESPACE {

using U = hn::RebindToUnsigned<F>;
using Words = hn::Vec<U>;

#if HWY_TARGET == HWY_SCALAR

HWY_INLINE void multiply(Words a, std::uint32_t factor, Words& high, Words& low) {
  const std::uint64_t product = std::uint64_t{hn::GetLane(a)} * factor;
  high = hn::Set(U(), std::uint32_t(product >> 32));
  low = hn::Set(U(), std::uint32_t(product));
}

#else

// The halves of the 64-bit products a * factor.
HWY_INLINE void multiply(Words a, std::uint32_t factor, Words& high, Words& low) {
  using Wide = hn::RepartitionToWide<U>;
  const Words factors = hn::Set(U(), factor);
  const auto even = hn::MulEven(a, factors);
  const auto odd =
      hn::MulEven(hn::BitCast(U(), hn::ShiftRight<32>(hn::BitCast(Wide(), a))), factors);
  high = hn::OddEven(hn::BitCast(U(), odd), hn::BitCast(U(), hn::ShiftRight<32>(even)));
  low = hn::OddEven(hn::BitCast(U(), hn::ShiftLeft<32>(odd)), hn::BitCast(U(), even));
}

#endif

// The words of kLanes blocks, one a lane.
struct PhiloxWords {
  Words w[4];
};

// Of the blocks whose numbers have the lower halves c0 and the upper halves c1.
HWY_INLINE PhiloxWords philox_words(const PhiloxStream& of, Words c0, Words c1) {
  Words c2 = hn::Set(U(), of.stream), c3 = hn::Set(U(), of.step);
  std::uint32_t k0 = of.key[0], k1 = of.key[1];
  for (int round = 0; round < 10; ++round) {
    Words high0, low0, high1, low1;
    multiply(c0, 0xD2511F53u, high0, low0);
    multiply(c2, 0xCD9E8D57u, high1, low1);
    c0 = hn::Xor(hn::Xor(high1, c1), hn::Set(U(), k0));
    c1 = low1;
    c2 = hn::Xor(hn::Xor(high0, c3), hn::Set(U(), k1));
    c3 = low0;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return {{c0, c1, c2, c3}};
}

// Of the blocks from `block` on.
HWY_INLINE PhiloxWords philox_words(const PhiloxStream& of, std::uint64_t block) {
  const Words first = hn::Set(U(), std::uint32_t(block));
  const Words low = hn::Add(first, hn::Iota(U(), 0));
  // A carry where the low word has come round.
  const Words high =
      hn::Sub(hn::Set(U(), std::uint32_t(block >> 32)), hn::VecFromMask(U(), hn::Lt(low, first)));
  return philox_words(of, low, high);
}

// Philox::uniform: the upper 24 bits times 2^-24, exact.
HWY_INLINE Floats uniform(Words bits) {
  const Ints upper = hn::BitCast(Bits(), hn::ShiftRight<8>(bits));
  return hn::Mul(hn::ConvertTo(F(), upper), splat(0x1p-24f));
}

// cos(2 pi t) for t in [0, 1); absolute error 2^-23. Taylor's series of cosine to a^8 and of sine
// to a^9 on |a| <= pi / 4, where the next terms are below 2.5e-8 and 2e-9.
HWY_INLINE Floats cos_of_turn(Floats t) {
  constexpr float kCos[] = {1.0f, -1.0f / 2, 1.0f / 24, -1.0f / 720, 1.0f / 40320};
  constexpr float kSin[] = {1.0f, -1.0f / 6, 1.0f / 120, -1.0f / 5040, 1.0f / 362880};
  const Ints quarter = hn::NearestInt(hn::Mul(t, splat(4.0f)));
  const Floats rest = hn::NegMulAdd(hn::ConvertTo(F(), quarter), splat(0.25f), t);  // exact
  const Floats a = hn::Mul(rest, splat(6.28318531f)), square = hn::Mul(a, a);
  const Floats cosine = polynomial(square, kCos), sine = hn::Mul(a, polynomial(square, kSin));
  // cos, -sin, -cos, sin of the rest, as the quarter is 0, 1, 2, 3 modulo 4.
  const Ints one = hn::Set(Bits(), 1), two = hn::Set(Bits(), 2);
  const auto is_odd = hn::RebindMask(F(), hn::Eq(hn::And(quarter, one), one));
  const auto is_negative = hn::RebindMask(F(), hn::Eq(hn::And(hn::Add(quarter, one), two), two));
  const Floats value = hn::IfThenElse(is_odd, sine, cosine);
  return hn::IfThenElse(is_negative, hn::Neg(value), value);
}

// Philox::normal by Box-Muller from two words. 1 - u is exact, so that the logarithm is too, up to
// its own error.
HWY_INLINE Floats normal(Words u, Words v) {
  const Floats radius = hn::Sqrt(hn::Mul(splat(-2.0f), log(hn::Sub(splat(1.0f), uniform(u)))));
  return hn::Mul(radius, cos_of_turn(uniform(v)));
}

}  // namespace HWY_NAMESPACE
}  // namespace keel::onednn
HWY_AFTER_NAMESPACE();

#endif  // toggled guard
