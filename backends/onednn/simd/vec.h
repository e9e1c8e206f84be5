// Registers of floats for kernels compiled once per instruction set: loads and stores that stop at
// the end of a row, sums in double and in a fixed order, maxima that keep NaN.
//
// Included (after hwy/foreach_target.h) by files that Highway compiles once per target, hence the
// guard that toggles.
#if defined(KEEL_BACKENDS_ONEDNN_SIMD_VEC_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KEEL_BACKENDS_ONEDNN_SIMD_VEC_H_
#undef KEEL_BACKENDS_ONEDNN_SIMD_VEC_H_
#else
#define KEEL_BACKENDS_ONEDNN_SIMD_VEC_H_
#endif

#include <hwy/highway.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>

#include "src/core/bf16.h"

// Put this on a lambda that is the body of a loop: a call for each register would cost more than
// its work, and captured values would be read from memory again after every store.
#ifndef KEEL_LOOP_BODY
#define KEEL_LOOP_BODY HWY_ATTR __attribute__((always_inline))
#endif

HWY_BEFORE_NAMESPACE();
namespace keel::onednn {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using F = hn::ScalableTag<float>;
using Floats = hn::Vec<F>;
using Bits = hn::RebindToSigned<F>;  // the 32-bit integers of a register of floats
using Ints = hn::Vec<Bits>;
using U = hn::RebindToUnsigned<F>;
using Words = hn::Vec<U>;
using Half = hn::Rebind<std::uint16_t, U>;  // as many as a register has floats
using D = hn::ScalableTag<double>;
using Doubles = hn::Vec<D>;
using NarrowF = hn::Rebind<float, D>;  // as many floats as a register holds doubles

inline constexpr std::size_t kLanes = hn::MaxLanes(F());

HWY_INLINE Floats splat(float value) { return hn::Set(F(), value); }
HWY_INLINE Floats zero() { return hn::Zero(F()); }

// The bits of a register of bf16, each in the lower half of its lane, and the numbers themselves.
HWY_INLINE Words load_bits(const BF16* from) {
  return hn::PromoteTo(U(), hn::LoadU(Half(), reinterpret_cast<const std::uint16_t*>(from)));
}
HWY_INLINE Floats widened(Words bits) { return hn::BitCast(F(), hn::ShiftLeft<16>(bits)); }

// Copies n numbers, fewer than a register has lanes, in pieces of fixed sizes, which need no call.
HWY_INLINE void copy_few(const BF16* from, std::size_t n, BF16* to) {
  const auto copy = [&]<std::size_t kPiece>(std::integral_constant<std::size_t, kPiece>)
                        KEEL_LOOP_BODY {
                          if (kPiece >= kLanes || (n & kPiece) == 0) return;
                          std::memcpy(to, from, kPiece * sizeof(BF16));
                          from += kPiece, to += kPiece;
                        };
  copy(std::integral_constant<std::size_t, 8>{});
  copy(std::integral_constant<std::size_t, 4>{});
  copy(std::integral_constant<std::size_t, 2>{});
  copy(std::integral_constant<std::size_t, 1>{});
}

// A whole register of a row.
struct Whole {
  HWY_INLINE Floats load(const float* p) const { return hn::LoadU(F(), p); }
  HWY_INLINE Floats load(const BF16* p) const { return widened(load_bits(p)); }
  HWY_INLINE Words load(const std::uint32_t* p) const { return hn::LoadU(U(), p); }
  HWY_INLINE Floats load_or(const float* p, float) const { return hn::LoadU(F(), p); }
  HWY_INLINE void store(Floats v, float* p) const { hn::StoreU(v, F(), p); }
  HWY_INLINE Floats only(Floats v) const { return v; }
};

// The first lanes of a register, for the end of a row; nothing after them is read or written.
class First {
 public:
  HWY_INLINE explicit First(std::size_t count) : mask_(hn::FirstN(F(), count)), count_(count) {}
  HWY_INLINE std::size_t count() const { return count_; }
  // Lanes after the end read as 0, or as `rest` if that is given.
  HWY_INLINE Floats load(const float* p) const { return hn::MaskedLoad(mask_, F(), p); }
  HWY_INLINE Words load(const std::uint32_t* p) const {
    return hn::MaskedLoad(hn::RebindMask(U(), mask_), U(), p);
  }
  HWY_INLINE Floats load(const BF16* p) const {
    BF16 lanes[kLanes];
    hn::StoreU(hn::Zero(Half()), Half(), reinterpret_cast<std::uint16_t*>(lanes));
    copy_few(p, count_, lanes);
    return widened(load_bits(lanes));
  }
  HWY_INLINE Floats load_or(const float* p, float rest) const {
    return hn::IfThenElse(mask_, load(p), splat(rest));
  }
  HWY_INLINE void store(Floats v, float* p) const { hn::BlendedStore(v, mask_, F(), p); }
  // The same value with 0 in the lanes after the end.
  HWY_INLINE Floats only(Floats v) const { return hn::IfThenElseZero(mask_, v); }

 private:
  hn::Mask<F> mask_;
  std::size_t count_;
};

// Calls body(part, i) for the registers that cover [0, n); the last may be a First.
template <class Body>
HWY_INLINE void for_lanes(std::size_t n, const Body& body) {
  std::size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) body(Whole{}, i);
  if (i < n) body(First(n - i), i);
}

// Calls body(k) for k < kCount without a loop, so that arrays indexed with k can stay in registers.
template <std::size_t kCount, class Body>
HWY_INLINE void unrolled(const Body& body) {
  [&]<std::size_t... kIndex>(std::index_sequence<kIndex...>) KEEL_LOOP_BODY { (body(kIndex), ...); }
  (std::make_index_sequence<kCount>());
}

// A sum of floats kept in double, so that only the final rounding to float matters.
class DoubleSum {
 public:
  HWY_INLINE DoubleSum() : low_(hn::Zero(D())), high_(hn::Zero(D())) {}
  HWY_INLINE void add(Floats v) {
#if HWY_TARGET == HWY_SCALAR
    low_ = hn::Add(low_, hn::PromoteTo(D(), v));
#else
    low_ = hn::Add(low_, hn::PromoteTo(D(), hn::LowerHalf(NarrowF(), v)));
    high_ = hn::Add(high_, hn::PromoteTo(D(), hn::UpperHalf(NarrowF(), v)));
#endif
  }
  // Adds a * b, each product exact.
  HWY_INLINE void add_product(Floats a, Floats b) {
#if HWY_TARGET == HWY_SCALAR
    low_ = hn::MulAdd(hn::PromoteTo(D(), a), hn::PromoteTo(D(), b), low_);
#else
    const NarrowF half;
    low_ = hn::MulAdd(hn::PromoteTo(D(), hn::LowerHalf(half, a)),
                      hn::PromoteTo(D(), hn::LowerHalf(half, b)), low_);
    high_ = hn::MulAdd(hn::PromoteTo(D(), hn::UpperHalf(half, a)),
                       hn::PromoteTo(D(), hn::UpperHalf(half, b)), high_);
#endif
  }
  HWY_INLINE void add(const DoubleSum& other) {
    low_ = hn::Add(low_, other.low_);
    high_ = hn::Add(high_, other.high_);
  }
  // Adds all lanes together, in an order that depends only on the instruction set.
  HWY_INLINE double total() const { return hn::GetLane(hn::SumOfLanes(D(), hn::Add(low_, high_))); }

 private:
  Doubles low_, high_;
};

// The sum over [0, n) of term(part, i), which returns kLanes floats; lanes
// after the end are ignored.
template <class Term>
HWY_INLINE double sum_of(std::size_t n, const Term& term) {
  DoubleSum even, odd;
  std::size_t i = 0;
  for (; i + 2 * kLanes <= n; i += 2 * kLanes) {
    even.add(term(Whole{}, i));
    odd.add(term(Whole{}, i + kLanes));
  }
  for (; i + kLanes <= n; i += kLanes) even.add(term(Whole{}, i));
  if (i < n) {
    const First part(n - i);
    odd.add(part.only(term(part, i)));
  }
  even.add(odd);
  return even.total();
}

// The larger of two values in each lane; NaN if either is NaN.
HWY_INLINE Floats larger(Floats a, Floats b) {
  return hn::IfThenElse(hn::Or(hn::Ge(a, b), hn::IsNaN(a)), a, b);
}

// The largest of n floats; NaN if one is NaN, -infinity if n is 0.
HWY_INLINE float max_of(const float* p, std::size_t n) {
  const float lowest = -std::numeric_limits<float>::infinity();
  Floats even = splat(lowest), odd = even;
  std::size_t i = 0;
  for (; i + 2 * kLanes <= n; i += 2 * kLanes) {
    even = larger(even, hn::LoadU(F(), p + i));
    odd = larger(odd, hn::LoadU(F(), p + i + kLanes));
  }
  for (; i + kLanes <= n; i += kLanes) even = larger(even, hn::LoadU(F(), p + i));
  if (i < n) odd = larger(odd, First(n - i).load_or(p + i, lowest));
  even = larger(even, odd);
  // MaxOfLanes may drop a NaN.
  if (!hn::AllFalse(F(), hn::IsNaN(even))) return std::numeric_limits<float>::quiet_NaN();
  return hn::GetLane(hn::MaxOfLanes(F(), even));
}

}  // namespace HWY_NAMESPACE
}  // namespace keel::onednn
HWY_AFTER_NAMESPACE();

#endif  // toggled guard
