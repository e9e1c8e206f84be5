// Softmax over keys that come tile by tile, and its backward, compiled once per instruction set.
// When a further tile of keys makes the largest score grow, the earlier results are scaled down
// accordingly.
#if defined(KEEL_BACKENDS_ONEDNN_SIMD_ATTENTION_SOFTMAX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KEEL_BACKENDS_ONEDNN_SIMD_ATTENTION_SOFTMAX_INL_H_
#undef KEEL_BACKENDS_ONEDNN_SIMD_ATTENTION_SOFTMAX_INL_H_
#else
#define KEEL_BACKENDS_ONEDNN_SIMD_ATTENTION_SOFTMAX_INL_H_
#endif

#include "backends/onednn/simd/attention_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace keel::onednn {
namespace HWY_NAMESPACE {

// The value that is subtracted from scores before their exponential is taken: their maximum for
// factors of float32. For factors of bf16 it is the next multiple of log 2: earlier results are
// then scaled by powers of 2, so that how a probability is rounded does not depend on the tiles.
// The multiple is subtracted in two parts, of which the larger has few bits.
template <class T>
struct Shift {
  HWY_INLINE static Floats of_max(Floats max) { return max; }
  HWY_INLINE static Floats subtract(Floats score, Floats shift) { return hn::Sub(score, shift); }
  HWY_INLINE static Floats factor(Floats before, Floats shift) {
    return exp(hn::Sub(before, shift));
  }
  HWY_INLINE static Floats add(Floats shift, Floats log_sum) { return hn::Add(shift, log_sum); }
};

template <>
struct Shift<BF16> {
  static constexpr float kLog2E = 1.44269504f, kMost = 0.693359375f, kRest = -2.12194440e-4f;

  HWY_INLINE static Floats of_max(Floats max) { return hn::Ceil(hn::Mul(max, splat(kLog2E))); }
  HWY_INLINE static Floats subtract(Floats score, Floats shift) {
    return hn::NegMulAdd(shift, splat(kRest), hn::NegMulAdd(shift, splat(kMost), score));
  }
  HWY_INLINE static Floats factor(Floats before, Floats shift) {
    const Floats power = hn::Max(hn::Sub(before, shift), splat(-127));
    const Ints exponent = hn::Add(hn::ConvertTo(Bits(), power), hn::Set(Bits(), 127));
    return hn::BitCast(F(), hn::ShiftLeft<23>(exponent));
  }
  HWY_INLINE static Floats add(Floats shift, Floats log_sum) {
    return hn::MulAdd(shift, splat(kMost), hn::MulAdd(shift, splat(kRest), log_sum));
  }
};

// The state of the queries of a tile after some tiles of keys.
struct SoftmaxState {
  HWY_ALIGN float shift[kQueryTile];   // Shift::of_max of the scores
  HWY_ALIGN float sum[kQueryTile];     // of exp(score - shift)
  HWY_ALIGN float factor[kQueryTile];  // of what y holds already, in the end 1 / sum
};

HWY_INLINE Floats largest_score(const TilePlace& place, std::size_t column, const float* tile) {
  Floats max = splat(kMinusInfinity);
  for (std::size_t j = 0; j < place.keys.count; ++j) {
    max = hn::Max(max, hn::Load(F(), tile + j * kQueryTile + column));
  }
  return max;
}

// Makes probabilities of scores, but for the division by their sum. A query that has seen no key
// has the shift -infinity, which is not subtracted.
template <class T>
void apply_softmax(const TilePlace& place, SoftmaxState& state, float* tile) {
  const bool is_first = place.keys.first == place.queries.from_key;
  for (std::size_t c = 0; c < columns_of(place.queries); c += kLanes) {
    Floats last = Shift<T>::of_max(largest_score(place, c, tile));
    if (!is_first) last = hn::Max(last, hn::Load(F(), state.shift + c));
    const Floats shift = hn::IfThenZeroElse(hn::Eq(last, splat(kMinusInfinity)), last);
    Floats sum = zero();
    for_keys(place, c, [&](auto kept, std::size_t at) KEEL_LOOP_BODY {
      const Floats e = exp(Shift<T>::subtract(hn::Load(F(), tile + at), shift));
      sum = hn::Add(sum, e);
      hn::Store(kept.only(e), F(), tile + at);
    });
    if (!is_first) {
      const Floats factor = Shift<T>::factor(hn::Load(F(), state.shift + c), shift);
      hn::Store(factor, F(), state.factor + c);
      sum = hn::MulAdd(hn::Load(F(), state.sum + c), factor, sum);
    }
    hn::Store(last, F(), state.shift + c);
    hn::Store(sum, F(), state.sum + c);
  }
}

// The factor that is left for y, and lse. No sum is 0 but that over no keys.
template <class T>
void finish_softmax(const AttentionHead& h, const QueryTile& queries, SoftmaxState& state,
                    float* lse) {
  for_lanes(queries.count, [&](auto part, std::size_t c) HWY_ATTR {
    const Floats sum = hn::Load(F(), state.sum + c), shift = hn::Load(F(), state.shift + c);
    const auto is_blind = hn::Eq(sum, zero());
    const Floats factor = hn::Div(splat(h.plan.factor), sum);
    hn::Store(hn::IfThenZeroElse(is_blind, factor), F(), state.factor + c);
    const Floats of_all = Shift<T>::add(shift, log(sum));
    part.store(hn::IfThenZeroElse(is_blind, of_all), lse + queries.first + c);
  });
}

// Multiplies y's rows by the state's factors.
inline void scale_rows(const AttentionHead& h, const QueryTile& queries, const SoftmaxState& state,
                       float* y) {
  for (std::size_t i = 0; i < queries.count; ++i, y += h.plan.features()) {
    const Floats factor = splat(state.factor[i]);
    for_lanes(h.plan.width, [&](auto part, std::size_t c)
                                HWY_ATTR { part.store(hn::Mul(part.load(y + c), factor), y + c); });
  }
}

// The backward needs this of a tile of queries: of the slices q, y, lse and dy of a head.
template <class T>
struct QueryState {
  TransposedOf<T> q, dy;
  HWY_ALIGN float lse[kQueryTile] = {};
  HWY_ALIGN float delta[kQueryTile] = {};  // the sum of dy y

  template <class Slices>
  QueryState(const AttentionHead& h, const QueryTile& queries, const Slices& of) {
    q.fill(h, queries, of.q);
    dy.fill(h, queries, of.dy);
    std::copy_n(of.lse + queries.first, queries.count, lse);
    for (std::size_t i = 0; i < queries.count; ++i) {
      const std::size_t start = (queries.first + i) * h.plan.features();
      delta[i] = float(sum_of(h.plan.width, [&](auto part, std::size_t c) HWY_ATTR {
        const Floats v = part.load(of.dy + start + c), y = part.load(of.y + start + c);
        return hn::Mul(std::is_same_v<T, BF16> ? widened(rounded_bits(v)) : v, y);
      }));
    }
  }
};

// scores -> the probabilities that are kept; products of dy and v -> dS.
template <class T>
void differentiate(const TilePlace& place, const QueryState<T>& state, float* scores,
                   float* products) {
  for (std::size_t c = 0; c < columns_of(place.queries); c += kLanes) {
    const Floats lse = hn::Load(F(), state.lse + c), delta = hn::Load(F(), state.delta + c);
    for_keys(place, c, [&](auto kept, std::size_t at) KEEL_LOOP_BODY {
      const Floats p = exp(hn::Sub(hn::Load(F(), scores + at), lse));
      const Floats dp = kept.only(hn::Load(F(), products + at));
      hn::Store(hn::Mul(p, hn::Sub(dp, delta)), F(), products + at);
      hn::Store(kept.only(p), F(), scores + at);
    });
  }
  hide(place, 0, products);  // where v may be so large that dp is not finite
}

}  // namespace HWY_NAMESPACE
}  // namespace keel::onednn
HWY_AFTER_NAMESPACE();

#endif  // toggled guard
