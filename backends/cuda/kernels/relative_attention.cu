// Relative attention: a block has a tile of queries and loops over the keys, tile by tile.
#include "backends/cuda/kernels/kernels.h"
#include "backends/cuda/kernels/relative_attention.cuh"

namespace keel::cuda {
namespace {

template <class T>
__global__ void __launch_bounds__(T::kBlock)
    attend_relative(RelativeAttention of, Global<float> y, Global<float> lse) {
  __shared__ QueryPanels<T> panels;
  __shared__ typename T::Exchange exchange;
  const AttentionPlace place(of.plain, of.sizes.queries, T::kOwn);
  load_positions<T>(panels.qk, of, place, {of.qk, of.sizes.queries, place.first});
  load_positions<T>(panels.qp, of, place, {of.qp, of.sizes.queries, place.first});
  Softmax<T> softmax(of.is_narrow);
  typename T::Results results;
  clear<T>(results);
  each_relative_tile<T>(of, place, panels, [&](std::int64_t first, typename T::Scores& scores) {
    KEEL_UNROLL
    for (int r = 0; r < T::kRowsAThread; ++r) {
      for (int c = 0; c < T::kColsAThread; ++c) {
        const bool is_seen = of.sees(place.row, place.first + T::row(r), first + T::col(c));
        scores[r][c] = is_seen ? of.scale * scores[r][c] : -INFINITY;
      }
      const float factor = softmax.take(r, scores[r], kAllLanes, exchange);
      for (float4& x : results[r]) {
        x = make_float4(x.x * factor, x.y * factor, x.z * factor, x.w * factor);
      }
    }
    __syncwarp();
    add_products<T>(exchange, panels.v, results);
    __syncwarp();
  });
  const std::int64_t rows = of.sizes.queries - place.first;
  const std::int64_t start = place.feature(of.plain, of.sizes.queries, place.first);
  store_results<T>(y, {start, rows}, of.plain, results,
                   [&](int r) { return softmax.sum[r] == 0 ? 0 : 1 / softmax.sum[r]; });
  for (int r = 0; r < T::kRowsAThread; ++r) {
    if (T::lane() != 0 || T::row(r) >= rows) continue;
    lse[place.per_query(of.plain, place.first + T::row(r))] = softmax.lse(r);
  }
}

}  // namespace

Prepared prepare_relative_attention(const NodeContext& context) {
  return kernel_of([of = relative_attention_of(context)](const Binding& b) {
    with_relative_tile(of.sizes.width, [&]<class T>(std::type_identity<T>) {
      launch(attend_relative<T>, of.grid<T>(of.sizes.batch * of.sizes.heads, of.sizes.queries),
             of.bound(b), output(b.outputs[RelativeAttentionOutput::kY]),
             output(b.outputs[RelativeAttentionOutput::kLse]));
    });
  });
}

}  // namespace keel::cuda
