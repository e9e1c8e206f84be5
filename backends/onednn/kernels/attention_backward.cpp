// The backward of attention; each tile of probabilities is recomputed from q, k and lse.
#include "backends/onednn/attention_plan.h"
#include "backends/onednn/kernels/bf16.h"
#include "backends/onednn/kernels/kernels.h"
#include "src/ops/attention.h"

#ifndef KEEL_BACKENDS_ONEDNN_KERNELS_ATTENTION_BACKWARD_ONCE_
#define KEEL_BACKENDS_ONEDNN_KERNELS_ATTENTION_BACKWARD_ONCE_

namespace keel::onednn {

// One head's slices of the tensors.
struct AttentionGradientSlices {
  const float *q, *k, *v, *y, *lse, *dy;
  float *dq, *dk, *dv;
};

}  // namespace keel::onednn

#endif  // KEEL_BACKENDS_ONEDNN_KERNELS_ATTENTION_BACKWARD_ONCE_

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/onednn/kernels/attention_backward.cpp"
#include <hwy/foreach_target.h>

#include "backends/onednn/simd/attention_softmax-inl.h"

HWY_BEFORE_NAMESPACE();
namespace keel::onednn {
namespace HWY_NAMESPACE {
namespace {

// Adds what a tile gives to dq, dk and dv; it is the first to give anything to dq for key 0.
void add_gradients(const TilePlace& place, const float* kept, const float* ds,
                   const AttentionGradientSlices& of) {
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

void attend_backward(const AttentionHead& h, const AttentionGradientSlices& of) {
  clear_rows(h, h.plan.keys, of.dk);
  clear_rows(h, h.plan.keys, of.dv);
  ScoreTile scores, products;
  for (std::size_t i = 0; i < h.plan.queries; i += kQueryTile) {
    const QueryTile queries(h, i);
    if (queries.keys == 0) {
      clear_rows(h, queries.count, of.dq + i * h.plan.features());
      continue;
    }
    const QueryState state(h, queries, of);
    for (std::size_t j = 0; j < queries.keys; j += kKeyTile) {
      const TilePlace place{h, queries, KeyTile(queries, j)};
      multiply_keys(place, of.k, state.q, &h.plan.scale, scores.at);
      hide(place, kMinusInfinity, scores.at);
      multiply_keys(place, of.v, state.dy, &h.plan.factor, products.at);
      differentiate(place, state, scores.at, products.at);
      add_gradients(place, scores.at, products.at, of);
    }
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace keel::onednn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace keel::onednn {

HWY_EXPORT(attend_backward);

Prepared prepare_attention_backward(const NodeContext& context) {
  using In = AttentionInput;
  using Out = AttentionGradient;
  Prepared wide = by_heads(context, [](const AttentionHead& h, const Binding& b) {
    const AttentionGradientSlices of{
        h.of_queries(b.inputs[In::kQ]),    h.of_keys(b.inputs[In::kK]),
        h.of_keys(b.inputs[In::kV]),       h.of_queries(b.inputs[In::kY]),
        h.lse(b.inputs[In::kLse]),         h.of_queries(b.inputs[In::kDy]),
        h.of_queries(b.outputs[Out::kDq]), h.of_keys(b.outputs[Out::kDk]),
        h.of_keys(b.outputs[Out::kDv])};
    HWY_DYNAMIC_DISPATCH(attend_backward)(h, of);
  });
  return widening(context, std::move(wide));
}

}  // namespace keel::onednn
#endif
