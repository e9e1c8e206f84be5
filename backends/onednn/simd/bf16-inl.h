// Rows of bf16: rounding, and the pairs that products of bf16 take, compiled once per instruction
// set.
#if defined(KEEL_BACKENDS_ONEDNN_SIMD_BF16_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KEEL_BACKENDS_ONEDNN_SIMD_BF16_INL_H_
#undef KEEL_BACKENDS_ONEDNN_SIMD_BF16_INL_H_
#else
#define KEEL_BACKENDS_ONEDNN_SIMD_BF16_INL_H_
#endif

#include <cstring>

#include "backends/onednn/narrow_product.h"
#include "backends/onednn/simd/rounded-inl.h"
#include "backends/onednn/simd/small_product-inl.h"

HWY_BEFORE_NAMESPACE();
namespace keel::onednn {
namespace HWY_NAMESPACE {

HWY_INLINE Words load_bits(const float* from) { return rounded_bits(hn::LoadU(F(), from)); }

// Two terms of a row as they lie in memory.
HWY_INLINE Pair pair_at(const BF16* at) {
  Pair pair;
  std::memcpy(&pair, at, sizeof(pair));
  return pair;
}

HWY_INLINE Pair bits_of(BF16 number) { return number.bits(); }
HWY_INLINE Pair bits_of(float number) { return bf16_bits(number); }

HWY_INLINE void round_row(const float* from, BF16* to, std::size_t n) {
  const std::size_t whole = n / kLanes * kLanes;
  for (std::size_t i = 0; i < whole; i += kLanes) store_bits(load_bits(from + i), to + i);
  for (std::size_t i = whole; i < n; ++i) to[i] = BF16(from[i]);
}

// pairs[c] holds first[c] and second[c], rounded where they are floats; 0 for an absent second row.
template <class T>
HWY_INLINE void join_rows(const T* first, const T* second, std::size_t n, Pair* pairs) {
  const std::size_t whole = n / kLanes * kLanes;
  for (std::size_t c = 0; c < whole; c += kLanes) {
    const Words low = load_bits(first + c);
    const Words high = second ? hn::ShiftLeft<16>(load_bits(second + c)) : hn::Zero(U());
    hn::StoreU(hn::Or(low, high), U(), pairs + c);
  }
  for (std::size_t c = whole; c < n; ++c) {
    pairs[c] = bits_of(first[c]) | (second ? bits_of(second[c]) : 0) << 16;
  }
}

#if HWY_TARGET != HWY_SCALAR
// Four pairs of each of four rows, transposed.
HWY_INLINE void turn_four(const BF16* const* rows, std::size_t term, const Rows<Pair>& to) {
  const hn::FixedTag<Pair, 4> d;
  const auto load = [&](int i) HWY_ATTR {
    return hn::LoadU(d, reinterpret_cast<const Pair*>(rows[i] + term));
  };
  const auto a = load(0), b = load(1), c = load(2), e = load(3);
  const auto ac_low = hn::InterleaveLower(a, c), ac_high = hn::InterleaveUpper(d, a, c);
  const auto be_low = hn::InterleaveLower(b, e), be_high = hn::InterleaveUpper(d, b, e);
  hn::StoreU(hn::InterleaveLower(ac_low, be_low), d, to.at);
  hn::StoreU(hn::InterleaveUpper(d, ac_low, be_low), d, to.at + to.row);
  hn::StoreU(hn::InterleaveLower(ac_high, be_high), d, to.at + 2 * to.row);
  hn::StoreU(hn::InterleaveUpper(d, ac_high, be_high), d, to.at + 3 * to.row);
}
#endif

// Row k of `to` has the pairs k of some rows, four at the most; 0 stands for a term after the last.
HWY_INLINE void turn_pairs(const BF16* const* rows, std::size_t count, std::size_t terms,
                           const Rows<Pair>& to) {
  std::size_t k = 0;
#if HWY_TARGET != HWY_SCALAR
  for (; count == 4 && 2 * k + 8 <= terms; k += 4) {
    turn_four(rows, 2 * k, {to.at + k * to.row, to.row});
  }
#endif
  for (; k < pairs_of(terms); ++k) {
    for (std::size_t i = 0; i < count; ++i) {
      const BF16* const at = rows[i] + 2 * k;
      to.at[k * to.row + i] = 2 * k + 1 < terms ? pair_at(at) : bits_of(*at);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace keel::onednn
HWY_AFTER_NAMESPACE();

#endif  // toggled guard
