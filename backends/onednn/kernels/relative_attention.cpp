// Relative attention, one tile of probabilities at a time. Beside factors of bf16 a tile is rounded
// to bf16 before it meets v.
#include "src/ops/relative_attention.h"

#include "backends/onednn/kernels/kernels.h"
#include "backends/onednn/relative_plan.h"

#ifndef KEEL_BACKENDS_ONEDNN_KERNELS_RELATIVE_ATTENTION_ONCE_
#define KEEL_BACKENDS_ONEDNN_KERNELS_RELATIVE_ATTENTION_ONCE_

namespace keel::onednn {

// One head's slices of the tensors.
template <class T>
struct RelativeSlices {
  const T *qk, *qp, *k, *v;
  float *y, *lse;
  DistancePanels<T> panels;
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
template <class T>
void attend(const RelativeHead& h, const QueryTile& queries, const RelativeSlices<T>& of) {
  const std::size_t d = h.plan.attention.features();
  float* const y = of.y + queries.first * d;
  TransposedOf<T> qk;
  ScoreTile tile;
  SoftmaxState state;
  qk.fill(h.head, queries, of.qk);
  for (std::size_t j = queries.from_key; j < queries.keys; j += kKeyTile) {
    const TilePlace place{h.head, queries, KeyTile(queries, j)};
    const bool is_first = j == queries.from_key;
    score<T>(place, h, qk, {of.qp, of.k, of.panels}, tile.at);
    apply_softmax<T>(place, state, tile.at);
    if (!is_first) scale_rows(h.head, queries, state, y);
    add_values(place, tile.at, of.v, y, !is_first);
  }
  finish_softmax<T>(h.head, queries, state, of.lse);
  scale_rows(h.head, queries, state, y);
}

template <class T>
void attend_all(const RelativeHead& h, const RelativeSlices<T>& of) {
  for (std::size_t i = 0; i < h.head.plan.queries; i += kQueryTile) attend(h, h.tile(i), of);
}
void attend_relative(const RelativeHead& h, const RelativeSlices<float>& of) { attend_all(h, of); }
void attend_relative_narrow(const RelativeHead& h, const RelativeSlices<BF16>& of) {
  attend_all(h, of);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace keel::onednn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace keel::onednn {

HWY_EXPORT(attend_relative);
HWY_EXPORT(attend_relative_narrow);

namespace {

void run_head(const RelativeHead& h, const RelativeSlices<float>& of) {
  HWY_DYNAMIC_DISPATCH(attend_relative)(h, of);
}
void run_head(const RelativeHead& h, const RelativeSlices<BF16>& of) {
  HWY_DYNAMIC_DISPATCH(attend_relative_narrow)(h, of);
}

template <class T>
Prepared prepare(const RelativePlan& plan) {
  using In = RelativeAttentionInput;
  using Out = RelativeAttentionOutput;
  const auto run = [plan](const Binding& b) {
    const std::size_t heads = plan.attention.batch * plan.attention.heads;
    if (heads == 0) return;
    fill_panels<T>(plan, b.inputs[In::kP], b.workspace);
    parallel_blocks(std::int64_t(heads), [&](std::int64_t number) {
      const RelativeHead h(plan, b, std::size_t(number));
      run_head(h,
               RelativeSlices<T>{
                   h.head.of_queries<T>(b.inputs[In::kQk]), h.head.of_queries<T>(b.inputs[In::kQp]),
                   h.head.of_keys<T>(b.inputs[In::kK]), h.head.of_keys<T>(b.inputs[In::kV]),
                   h.head.of_queries(b.outputs[Out::kY]), h.head.lse(b.outputs[Out::kLse]),
                   DistancePanels<T>(plan, b.workspace, h.head.head)});
    });
  };
  return kernel_of(run, std::int64_t(DistancePanels<T>::bytes(plan)));
}

}  // namespace

Prepared prepare_relative_attention(const NodeContext& context) {
  const RelativePlan plan = relative_plan(context);
  if (!has_narrow_factors(context)) return prepare<float>(plan);
  return plan.is_narrow() ? prepare<BF16>(plan) : refuse_bf16_product(context);
}

}  // namespace keel::onednn
#endif
