// Attention, one tile of probabilities at a time. When a further tile of keys makes the largest
// score grow, the earlier results are scaled down accordingly. Beside factors of bf16 a tile is
// rounded to bf16 before it meets v.
#include "src/ops/attention.h"

#include "backends/onednn/attention_plan.h"
#include "backends/onednn/kernels/kernels.h"

#ifndef KEEL_BACKENDS_ONEDNN_KERNELS_ATTENTION_ONCE_
#define KEEL_BACKENDS_ONEDNN_KERNELS_ATTENTION_ONCE_

namespace keel::onednn {

// One head's slices of the tensors.
template <class T>
struct AttentionSlices {
  const T *q, *k, *v;
  float *y, *lse;
};

}  // namespace keel::onednn

#endif  // KEEL_BACKENDS_ONEDNN_KERNELS_ATTENTION_ONCE_

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/onednn/kernels/attention.cpp"
#include <hwy/foreach_target.h>

#include "backends/onednn/simd/narrow_attention-inl.h"

HWY_BEFORE_NAMESPACE();
namespace keel::onednn {
namespace HWY_NAMESPACE {
namespace {

void attend_to_nothing(const AttentionHead& h, const QueryTile& queries, float* y, float* lse) {
  for (std::size_t i = 0; i < queries.count; ++i, y += h.plan.features()) {
    std::fill_n(y, h.plan.width, 0.0f);
    lse[queries.first + i] = 0;
  }
}

void attend(const AttentionHead& h, const QueryTile& queries, const AttentionSlices<BF16>& of) {
  float* const y = of.y + queries.first * h.plan.features();
  if (queries.keys == 0) return attend_to_nothing(h, queries, y, of.lse);
  TransposedOf<BF16> q;
  ScoreTile tile;
  SoftmaxState state;
  q.fill(h, queries, of.q);
  for (std::size_t j = 0; j < queries.keys; j += kKeyTile) {
    const TilePlace place{h, queries, KeyTile(queries, j)};
    multiply_keys(place, of.k, q, &h.plan.scale, tile.at);
    hide(place, kMinusInfinity, tile.at);
    apply_softmax<BF16>(place, state, tile.at);
    if (j > 0) scale_rows(h, queries, state, y);
    add_values(place, tile.at, of.v, y, j > 0);
  }
  finish_softmax<BF16>(h, queries, state, of.lse);
  scale_rows(h, queries, state, y);
}

// Computes y and lse of a tile of queries.
void attend(const AttentionHead& h, const QueryTile& queries, const AttentionSlices<float>& of) {
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
    apply_softmax<float>(place, state, tile.at);
    const bool is_first = j == 0;
    if (!is_first) scale_rows(h, queries, state, y);
    if (has_one_tile) finish_softmax<float>(h, queries, state, of.lse);
    const RowFactors factors = has_one_tile ? RowFactors{state.factor, 1} : RowFactors{&kOne, 0};
    multiply({queries.count,
              place.keys.count,
              h.plan.width,
              {tile.at, 1, kQueryTile},
              {of.v + j * d, d},
              {y, d},
              factors,
              !is_first});
  }
  if (has_one_tile) return;
  finish_softmax<float>(h, queries, state, of.lse);
  scale_rows(h, queries, state, y);
}

template <class T>
void attend_all_of(const AttentionHead& h, const AttentionSlices<T>& of) {
  for (std::size_t i = 0; i < h.plan.queries; i += kQueryTile) attend(h, QueryTile(h, i), of);
}
void attend_all(const AttentionHead& h, const AttentionSlices<float>& of) { attend_all_of(h, of); }
void attend_all_narrow(const AttentionHead& h, const AttentionSlices<BF16>& of) {
  attend_all_of(h, of);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace keel::onednn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace keel::onednn {

HWY_EXPORT(attend_all);
HWY_EXPORT(attend_all_narrow);

namespace {

void run_attention(const AttentionHead& h, const AttentionSlices<float>& of) {
  HWY_DYNAMIC_DISPATCH(attend_all)(h, of);
}
void run_attention(const AttentionHead& h, const AttentionSlices<BF16>& of) {
  HWY_DYNAMIC_DISPATCH(attend_all_narrow)(h, of);
}

}  // namespace

Prepared prepare_attention(const NodeContext& context) {
  using In = AttentionInput;
  using Out = AttentionOutput;
  return by_heads(context, [](const AttentionHead& h, const Binding& b, auto factor) {
    using T = decltype(factor);
    run_attention(
        h, AttentionSlices<T>{h.of_queries<T>(b.inputs[In::kQ]), h.of_keys<T>(b.inputs[In::kK]),
                              h.of_keys<T>(b.inputs[In::kV]), h.of_queries(b.outputs[Out::kY]),
                              h.lse(b.outputs[Out::kLse])});
  });
}

}  // namespace keel::onednn
#endif
