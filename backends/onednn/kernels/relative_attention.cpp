// Relative attention, one tile of probabilities at a time.
#include "src/ops/relative_attention.h"

#include "backends/onednn/kernels/kernels.h"
#include "backends/onednn/relative_plan.h"

#ifndef KEEL_BACKENDS_ONEDNN_KERNELS_RELATIVE_ATTENTION_ONCE_
#define KEEL_BACKENDS_ONEDNN_KERNELS_RELATIVE_ATTENTION_ONCE_

namespace keel::onednn {

// One head's slices of the tensors.
struct RelativeSlices {
  const float *qk, *qp, *k, *v;
  float *y, *lse;
  DistancePanels panels;
};

}  // namespace keel::onednn

#endif  // KEEL_BACKENDS_ONEDNN_KERNELS_RELATIVE_ATTENTION_ONCE_

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/onednn/kernels/relative_attention.cpp"
#include <hwy/foreach_target.h>

#include "backends/onednn/simd/relative_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace keel::onednn {
namespace HWY_NAMESPACE {
namespace {

// Computes y and lse of a tile of queries. Each of them sees at least its own key.
void attend(const RelativeHead& h, const QueryTile& queries, const RelativeSlices& of) {
  const std::size_t d = h.plan.attention.features();
  float* const y = of.y + queries.first * d;
  Transposed qk;
  ScoreTile tile;
  SoftmaxState state;
  qk.fill(h.head, queries, of.qk);
  for (std::size_t j = queries.from_key; j < queries.keys; j += kKeyTile) {
    const TilePlace place{h.head, queries, KeyTile(queries, j)};
    const bool is_first = j == queries.from_key;
    score(place, h, qk, {of.qp, of.k, of.panels}, tile.at);
    apply_softmax(place, state, tile.at);
    if (!is_first) scale_rows(h.head, queries, state, y);
    multiply({queries.count,
              place.keys.count,
              h.plan.attention.width,
              {tile.at, 1, kQueryTile},
              {of.v + j * d, d},
              {y, d},
              {&kOne, 0},
              !is_first});
  }
  finish_softmax(h.head, queries, state, of.lse);
  scale_rows(h.head, queries, state, y);
}

void attend_relative(const RelativeHead& h, const RelativeSlices& of) {
  for (std::size_t i = 0; i < h.head.plan.queries; i += kQueryTile) attend(h, h.tile(i), of);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace keel::onednn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace keel::onednn {

HWY_EXPORT(attend_relative);

Prepared prepare_relative_attention(const NodeContext& context) {
  using In = RelativeAttentionInput;
  using Out = RelativeAttentionOutput;
  const RelativePlan plan = relative_plan(context);
  const auto run = [plan](const Binding& b) {
    const std::size_t heads = plan.attention.batch * plan.attention.heads;
    if (heads == 0) return;
    fill_panels(plan, b.inputs[In::kP], b.workspace);
    parallel_blocks(std::int64_t(heads), [&](std::int64_t number) {
      const RelativeHead h(plan, b, std::size_t(number));
      const RelativeSlices of{h.head.of_queries(b.inputs[In::kQk]),
                              h.head.of_queries(b.inputs[In::kQp]),
                              h.head.of_keys(b.inputs[In::kK]),
                              h.head.of_keys(b.inputs[In::kV]),
                              h.head.of_queries(b.outputs[Out::kY]),
                              h.head.lse(b.outputs[Out::kLse]),
                              DistancePanels(plan, b.workspace, h.head.head)};
      HWY_DYNAMIC_DISPATCH(attend_relative)(h, of);
    });
  };
  return kernel_of(run, std::int64_t(DistancePanels::floats(plan) * sizeof(float)));
}

}  // namespace keel::onednn
#endif
