// Attention, one tile of probabilities at a time. When a further tile of keys makes the largest
// score grow, the earlier results are scaled down accordingly.
#include "src/ops/attention.h"

#include "backends/onednn/attention_plan.h"
#include "backends/onednn/kernels/kernels.h"

#ifndef KEEL_BACKENDS_ONEDNN_KERNELS_ATTENTION_ONCE_
#define KEEL_BACKENDS_ONEDNN_KERNELS_ATTENTION_ONCE_

namespace keel::onednn {

// One head's slices of the tensors.
struct AttentionSlices {
  const float *q, *k, *v;
  float *y, *lse;
};

}  // namespace keel::onednn

#endif  // KEEL_BACKENDS_ONEDNN_KERNELS_ATTENTION_ONCE_

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/onednn/kernels/attention.cpp"
#include <hwy/foreach_target.h>

#include "backends/onednn/simd/attention_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace keel::onednn {
namespace HWY_NAMESPACE {
namespace {

// What is known of the queries of a tile after some tiles of keys.
struct SoftmaxState {
  HWY_ALIGN float max[kQueryTile];     // of the scores
  HWY_ALIGN float sum[kQueryTile];     // of exp(score - max)
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
// has the maximum -infinity, which is not subtracted.
void apply_softmax(const TilePlace& place, SoftmaxState& state, float* tile) {
  const bool is_first = place.keys.first == 0;
  for (std::size_t c = 0; c < columns_of(place.queries); c += kLanes) {
    Floats max = largest_score(place, c, tile);
    if (!is_first) max = hn::Max(max, hn::Load(F(), state.max + c));
    const Floats shift = hn::IfThenZeroElse(hn::Eq(max, splat(kMinusInfinity)), max);
    Floats sum = zero();
    for_keys(place, c, [&](auto kept, std::size_t at) KEEL_LOOP_BODY {
      const Floats e = exp(hn::Sub(hn::Load(F(), tile + at), shift));
      sum = hn::Add(sum, e);
      hn::Store(kept.only(e), F(), tile + at);
    });
    if (!is_first) {
      const Floats factor = exp(hn::Sub(hn::Load(F(), state.max + c), shift));
      hn::Store(factor, F(), state.factor + c);
      sum = hn::MulAdd(hn::Load(F(), state.sum + c), factor, sum);
    }
    hn::Store(max, F(), state.max + c);
    hn::Store(sum, F(), state.sum + c);
  }
}

// The factor that is left for y, and lse. No sum is 0 but that over no keys.
void finish_softmax(const AttentionHead& h, const QueryTile& queries, SoftmaxState& state,
                    float* lse) {
  for_lanes(queries.count, [&](auto part, std::size_t c) HWY_ATTR {
    const Floats sum = hn::Load(F(), state.sum + c), max = hn::Load(F(), state.max + c);
    const auto is_blind = hn::Eq(sum, zero());
    const Floats factor = hn::Div(splat(h.plan.factor), sum);
    hn::Store(hn::IfThenZeroElse(is_blind, factor), F(), state.factor + c);
    part.store(hn::IfThenZeroElse(is_blind, hn::Add(max, log(sum))), lse + queries.first + c);
  });
}

// Multiplies y's rows by the state's factors.
void scale_rows(const AttentionHead& h, const QueryTile& queries, const SoftmaxState& state,
                float* y) {
  for (std::size_t i = 0; i < queries.count; ++i, y += h.plan.features()) {
    const Floats factor = splat(state.factor[i]);
    for_lanes(h.plan.width, [&](auto part, std::size_t c)
                                HWY_ATTR { part.store(hn::Mul(part.load(y + c), factor), y + c); });
  }
}

void attend_to_nothing(const AttentionHead& h, const QueryTile& queries, float* y, float* lse) {
  for (std::size_t i = 0; i < queries.count; ++i, y += h.plan.features()) {
    std::fill_n(y, h.plan.width, 0.0f);
    lse[queries.first + i] = 0;
  }
}

// Computes y and lse of a tile of queries.
void attend(const AttentionHead& h, const QueryTile& queries, const AttentionSlices& of) {
  const std::size_t d = h.plan.features();
  float* const y = of.y + queries.first * d;
  if (queries.keys == 0) return attend_to_nothing(h, queries, y, of.lse);
  Transposed q;
  ScoreTile tile;
  SoftmaxState state;
  q.fill(h, queries, of.q);
  const bool has_one_tile = queries.keys <= kKeyTile;
  for (std::size_t j = 0; j < queries.keys; j += kKeyTile) {
    const TilePlace place{h, queries, KeyTile(queries, j)};
    multiply_keys(place, of.k, q, &h.plan.scale, tile.at);
    hide(place, kMinusInfinity, tile.at);
    apply_softmax(place, state, tile.at);
    if (j > 0) scale_rows(h, queries, state, y);
    if (has_one_tile) finish_softmax(h, queries, state, of.lse);
    const RowFactors factors = has_one_tile ? RowFactors{state.factor, 1} : RowFactors{&kOne, 0};
    multiply({queries.count,
              place.keys.count,
              h.plan.width,
              {tile.at, 1, kQueryTile},
              {of.v + j * d, d},
              {y, d},
              factors,
              j > 0});
  }
  if (has_one_tile) return;
  finish_softmax(h, queries, state, of.lse);
  scale_rows(h, queries, state, y);
}

void attend_all(const AttentionHead& h, const AttentionSlices& of) {
  for (std::size_t i = 0; i < h.plan.queries; i += kQueryTile) attend(h, QueryTile(h, i), of);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace keel::onednn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace keel::onednn {

HWY_EXPORT(attend_all);

Prepared prepare_attention(const NodeContext& context) {
  using In = AttentionInput;
  using Out = AttentionOutput;
  return by_heads(context, [](const AttentionHead& h, const Binding& b) {
    const AttentionSlices of{h.of_queries(b.inputs[In::kQ]), h.of_keys(b.inputs[In::kK]),
                             h.of_keys(b.inputs[In::kV]), h.of_queries(b.outputs[Out::kY]),
                             h.lse(b.outputs[Out::kLse])};
    HWY_DYNAMIC_DISPATCH(attend_all)(h, of);
  });
}

}  // namespace keel::onednn
#endif
