// Attention: a block has a tile of queries and loops over the keys, tile by tile. When the largest
// score grows, the results so far are scaled down accordingly. Beside factors of bf16,
// probabilities are rounded to bf16 before they meet v.
#include "backends/cuda/kernels/attention.cuh"
#include "backends/cuda/kernels/kernels.h"

namespace keel::cuda {
namespace {

template <class T>
__global__ void __launch_bounds__(T::kBlock)
    attend(Attention of, Global<float> y, Global<float> lse) {
  __shared__ typename T::OwnPanel q;
  __shared__ typename T::OtherPanel k, v;
  __shared__ typename T::Exchange exchange;
  const AttentionPlace place(of.sizes, of.sizes.queries, T::kOwn);
  const AttentionDropout dropout(of, place);
  const std::int64_t start = place.feature(of.sizes, of.sizes.queries, place.first);
  load_panel<T>(q, present_queries(of.sizes, place.first), of.q, start, of.sizes);
  Softmax<T> softmax(of.is_narrow);
  typename T::Results results;
  clear<T>(results);
  each_key_tile<T>(of, place, k, v, [&](std::int64_t first, std::uint32_t present) {
    typename T::Scores scores;
    multiply_features<T>(q, k, scores);
    KEEL_UNROLL
    for (int r = 0; r < T::kRowsAThread; ++r) {
      const std::int64_t i = place.first + T::row(r);
      for (int c = 0; c < T::kColsAThread; ++c) {
        const bool is_seen = sees(of, i, first, T::col(c), present);
        scores[r][c] = is_seen ? of.scale * scores[r][c] : -INFINITY;
      }
      const std::uint32_t kept = kept_keys<T>(of, dropout, i, first);
      const float factor = softmax.take(r, scores[r], kept, exchange);
      for (float4& x : results[r]) {
        x = make_float4(x.x * factor, x.y * factor, x.z * factor, x.w * factor);
      }
    }
    __syncwarp();
    add_products<T>(exchange, v, results);
    __syncwarp();
  });
  const std::int64_t rows = of.sizes.queries - place.first;
  store_results<T>(y, {start, rows}, of.sizes, results,
                   [&](int r) { return softmax.sum[r] == 0 ? 0 : of.factor / softmax.sum[r]; });
  for (int r = 0; r < T::kRowsAThread; ++r) {
    if (T::lane() != 0 || T::row(r) >= rows) continue;
    lse[place.per_query(of.sizes, place.first + T::row(r))] =
        softmax.sum[r] == 0 ? 0 : softmax.lse(r);
  }
}

}  // namespace

Prepared prepare_attention(const NodeContext& context) {
  return kernel_of([of = attention_of(context)](const Binding& b) {
    with_tile(of.sizes.width, [&]<class T>(std::type_identity<T>) {
      launch(attend<T>, of.grid<T>(of.sizes.queries), of.bound(b),
             output(b.outputs[AttentionOutput::kY]), output(b.outputs[AttentionOutput::kLse]));
    });
  });
}

}  // namespace keel::cuda
