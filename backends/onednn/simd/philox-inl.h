// Philox4x32-10 (src/core/rng.h) for one counter per lane of a register, and normal numbers from
// its words. Compiled once per instruction set.
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

// The words of kLanes blocks, one block a lane.
struct PhiloxWords {
  Words w[4];
};

#if HWY_TARGET == HWY_SCALAR

using Wides = hn::Vec<hn::Rebind<std::uint64_t, U>>;
inline constexpr std::size_t kHalves = 1;

HWY_INLINE Wides product(Wides a, std::uint32_t factor) {
  return hn::Set(hn::DFromV<Wides>(), (hn::GetLane(a) & 0xFFFFFFFFu) * factor);
}
HWY_INLINE Wides xor_of(Wides a, Wides b, Wides c) { return hn::Xor(hn::Xor(a, b), c); }
HWY_INLINE void split(Words word, Wides (&halves)[kHalves]) {
  halves[0] = hn::Set(hn::DFromV<Wides>(), hn::GetLane(word));
}
HWY_INLINE Words join(const Wides (&halves)[kHalves]) {
  return hn::Set(U(), std::uint32_t(hn::GetLane(halves[0])));
}

#else

// A word of each block during the rounds: the words of even lanes and those of odd lanes,
// each in the lower half of a lane twice as wide. The upper halves may hold anything,
// because products ignore them.
using Wides = hn::Vec<hn::RepartitionToWide<U>>;
inline constexpr std::size_t kHalves = 2;

HWY_INLINE Wides product(Wides a, std::uint32_t factor) {
  return hn::MulEven(hn::BitCast(U(), a), hn::Set(U(), factor));
}
HWY_INLINE Wides xor_of(Wides a, Wides b, Wides c) { return hn::Xor3(a, b, c); }
HWY_INLINE void split(Words word, Wides (&halves)[kHalves]) {
  halves[0] = hn::BitCast(hn::DFromV<Wides>(), word);
  halves[1] = hn::ShiftRight<32>(halves[0]);
}
HWY_INLINE Words join(const Wides (&halves)[kHalves]) {
  return hn::OddEven(hn::BitCast(U(), hn::ShiftLeft<32>(halves[1])), hn::BitCast(U(), halves[0]));
}

#endif

// The words of block `index` of row `row` of the update: row_block(row, 4 * index).
HWY_INLINE PhiloxWords philox_words(const PhiloxStream& of, Words row, Words index) {
  Wides c0[kHalves], c1[kHalves], c2[kHalves], c3[kHalves];
  split(index, c0);
  split(row, c1);
  split(hn::Set(U(), of.stream), c2);
  split(hn::Set(U(), of.step), c3);
  for (const auto& key : of.keys) {
    const Wides key0 = hn::Set(hn::DFromV<Wides>(), key[0]);
    const Wides key1 = hn::Set(hn::DFromV<Wides>(), key[1]);
    unrolled<kHalves>([&](std::size_t h) KEEL_LOOP_BODY {
      const Wides p0 = product(c0[h], 0xD2511F53u), p1 = product(c2[h], 0xCD9E8D57u);
      c0[h] = xor_of(hn::ShiftRight<32>(p1), c1[h], key0);
      c1[h] = p1;
      c2[h] = xor_of(hn::ShiftRight<32>(p0), c3[h], key1);
      c3[h] = p0;
    });
  }
  return {{join(c0), join(c1), join(c2), join(c3)}};
}

// The words of consecutive blocks of one row, from `index` on.
HWY_INLINE PhiloxWords philox_words(const PhiloxStream& of, std::int64_t row, std::int64_t index) {
  return philox_words(of, hn::Set(U(), std::uint32_t(row)),
                      hn::Add(hn::Set(U(), std::uint32_t(index)), hn::Iota(U(), 0)));
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
  // Selects cos, -sin, -cos or sin of the rest for a quarter of 0, 1, 2, 3 modulo 4.
  const Ints one = hn::Set(Bits(), 1), two = hn::Set(Bits(), 2);
  const auto is_odd = hn::RebindMask(F(), hn::Eq(hn::And(quarter, one), one));
  const auto is_negative = hn::RebindMask(F(), hn::Eq(hn::And(hn::Add(quarter, one), two), two));
  const Floats value = hn::IfThenElse(is_odd, sine, cosine);
  return hn::IfThenElse(is_negative, hn::Neg(value), value);
}

// Philox::normal by Box-Muller from two words. 1 - u is exact, so the
// logarithm has only its own error.
HWY_INLINE Floats normal(Words u, Words v) {
  const Floats log_u = log_of_normal(hn::Sub(splat(1.0f), uniform(u)));
  const Floats radius = hn::Sqrt(hn::Mul(splat(-2.0f), log_u));
  return hn::Mul(radius, cos_of_turn(uniform(v)));
}

}  // namespace HWY_NAMESPACE
}  // namespace keel::onednn
HWY_AFTER_NAMESPACE();

#endif  // toggled guard
