// The backward of attention; each tile of probabilities is recomputed from q, k and lse. Beside
// factors of bf16, tiles and dy are rounded to bf16 before they are multiplied.
#include "backends/onednn/attention_plan.h"
#include "backends/onednn/kernels/kernels.h"
#include "src/ops/attention.h"

#ifndef KEEL_BACKENDS_ONEDNN_KERNELS_ATTENTION_BACKWARD_ONCE_
#define KEEL_BACKENDS_ONEDNN_KERNELS_ATTENTION_BACKWARD_ONCE_

namespace keel::onednn {

// One head's slices of the tensors.
template <class T>
struct AttentionGradientSlices {
  const T *q, *k, *v;
  const float *y, *lse, *dy;
  float *dq, *dk, *dv;
};

}  // namespace keel::onednn

#endif  // KEEL_BACKENDS_ONEDNN_KERNELS_ATTENTION_BACKWARD_ONCE_

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/onednn/kernels/attention_backward.cpp"
#include <hwy/foreach_target.h>

#include "backends/onednn/simd/narrow_attention-inl.h"

HWY_BEFORE_NAMESPACE();
namespace keel::onednn {
namespace HWY_NAMESPACE {
namespace {

// The factors, beside the tensors, of products with the probabilities of a tile's queries.
template <class T>
struct QueryFactors {
  QueryFactors(const AttentionHead&, const QueryTile&, const AttentionGradientSlices<T>&) {}
};
template <>
struct QueryFactors<BF16> : QueryPairs {
  QueryFactors(const AttentionHead& h, const QueryTile& queries,
               const AttentionGradientSlices<BF16>& of)
      : QueryPairs(h, queries, of.q, of.dy) {}
};

void add_gradients(const TilePlace& place, const QueryFactors<BF16>& by, const ScoreTile* tiles,
                   const AttentionGradientSlices<BF16>& of) {
  add_gradients(place, by, tiles, of.k, HeadGradients{of.dq, of.dk, of.dv});
}

// Multiplies the sums by their factors: dq of a tile of queries, dk and dv after the last tile.
void scale_queries(const AttentionHead& h, const QueryTile& queries,
                   const AttentionGradientSlices<BF16>& of) {
  const std::size_t d = h.plan.features();
  scale_tile({of.dq + queries.first * d, d}, queries.count, h.plan.width, h.plan.scale);
}
void scale_keys(const AttentionHead& h, const AttentionGradientSlices<BF16>& of) {
  const std::size_t d = h.plan.features();
  scale_tile({of.dk, d}, h.plan.keys, h.plan.width, h.plan.scale);
  scale_tile({of.dv, d}, h.plan.keys, h.plan.width, h.plan.factor);
}
void scale_queries(const AttentionHead&, const QueryTile&, const AttentionGradientSlices<float>&) {}
void scale_keys(const AttentionHead&, const AttentionGradientSlices<float>&) {}

// Adds what a tile gives to dq, dk and dv; it is the first to give anything to dq for key 0.
void add_gradients(const TilePlace& place, const QueryFactors<float>&, const ScoreTile* tiles,
                   const AttentionGradientSlices<float>& of) {
  const float *const kept = tiles[0].at, *const ds = tiles[1].at;
  const auto& [head, queries, keys] = place;
  const AttentionPlan& plan = head.plan;
  const std::size_t d = plan.features(), i = queries.first * d, j = keys.first * d;
  const RowFactors scale{&plan.scale, 0}, factor{&plan.factor, 0};
  multiply({keys.count,
            queries.count,
            plan.width,
            {kept, kQueryTile, 1},
            {of.dy + i, d},
            {of.dv + j, d},
            factor,
            true});
  multiply({keys.count,
            queries.count,
            plan.width,
            {ds, kQueryTile, 1},
            {of.q + i, d},
            {of.dk + j, d},
            scale,
            true});
  multiply({queries.count,
            keys.count,
            plan.width,
            {ds, 1, kQueryTile},
            {of.k + j, d},
            {of.dq + i, d},
            scale,
            keys.first > 0});
}

void clear_rows(const AttentionHead& h, std::size_t rows, float* x) {
  for (std::size_t i = 0; i < rows; ++i) std::fill_n(x + i * h.plan.features(), h.plan.width, 0.0f);
}

template <class T>
void attend_backward_of(const AttentionHead& h, const AttentionGradientSlices<T>& of) {
  clear_rows(h, h.plan.keys, of.dk);
  clear_rows(h, h.plan.keys, of.dv);
  ScoreTile tiles[2];  // probabilities, and their gradients
  for (std::size_t i = 0; i < h.plan.queries; i += kQueryTile) {
    const QueryTile queries(h, i);
    if (queries.keys == 0) {
      clear_rows(h, queries.count, of.dq + i * h.plan.features());
      continue;
    }
    const QueryState<T> state(h, queries, of);
    const QueryFactors<T> factors(h, queries, of);
    for (std::size_t j = 0; j < queries.keys; j += kKeyTile) {
      const TilePlace place{h, queries, KeyTile(queries, j)};
      multiply_keys(place, of.k, state.q, &h.plan.scale, tiles[0].at);
      hide(place, kMinusInfinity, tiles[0].at);
      multiply_keys(place, of.v, state.dy, &h.plan.factor, tiles[1].at);
      differentiate(place, state, tiles[0].at, tiles[1].at);
      add_gradients(place, factors, tiles, of);
    }
    scale_queries(h, queries, of);
  }
  scale_keys(h, of);
}

void attend_backward(const AttentionHead& h, const AttentionGradientSlices<float>& of) {
  attend_backward_of(h, of);
}
void attend_backward_narrow(const AttentionHead& h, const AttentionGradientSlices<BF16>& of) {
  attend_backward_of(h, of);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace keel::onednn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace keel::onednn {

HWY_EXPORT(attend_backward);
HWY_EXPORT(attend_backward_narrow);

namespace {

void run_backward(const AttentionHead& h, const AttentionGradientSlices<float>& of) {
  HWY_DYNAMIC_DISPATCH(attend_backward)(h, of);
}
void run_backward(const AttentionHead& h, const AttentionGradientSlices<BF16>& of) {
  HWY_DYNAMIC_DISPATCH(attend_backward_narrow)(h, of);
}

}  // namespace

Prepared prepare_attention_backward(const NodeContext& context) {
  using In = AttentionInput;
  using Out = AttentionGradient;
  return by_heads(context, [](const AttentionHead& h, const Binding& b, auto factor) {
    using T = decltype(factor);
    const AttentionGradientSlices<T> of{
        h.of_queries<T>(b.inputs[In::kQ]), h.of_keys<T>(b.inputs[In::kK]),
        h.of_keys<T>(b.inputs[In::kV]),    h.of_queries(b.inputs[In::kY]),
        h.lse(b.inputs[In::kLse]),         h.of_queries(b.inputs[In::kDy]),
        h.of_queries(b.outputs[Out::kDq]), h.of_keys(b.outputs[Out::kDk]),
        h.of_keys(b.outputs[Out::kDv])};
    run_backward(h, of);
  });
}

}  // namespace keel::onednn
#endif
