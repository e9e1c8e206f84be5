// The backward of attention: a kernel with a tile of queries a block computes dq, then one with a
// tile of keys a block computes dk and dv. Both recompute the probabilities from q, k and lse.
// Beside factors of bf16, probabilities, dS and dy are rounded to bf16 before they are multiplied.
#include "backends/cuda/kernels/attention.cuh"
#include "backends/cuda/kernels/functions.cuh"
#include "backends/cuda/kernels/kernels.h"

namespace keel::cuda {
namespace {

struct Saved {
  Global<const float> y, lse;
  Factor dy;
  Global<float> delta;  // (b, heads, queries), the sums of dy y
};

template <class T>
__global__ void __launch_bounds__(T::kBlock)
    differentiate_queries(Attention of, Saved saved, Global<float> dq) {
  __shared__ typename T::OwnPanel q, dy;
  __shared__ typename T::OtherPanel k, v;
  __shared__ typename T::Exchange exchange;
  const AttentionPlace place(of.sizes, of.sizes.queries, T::kOwn);
  const AttentionDropout dropout(of, place);
  const std::int64_t start = place.feature(of.sizes, of.sizes.queries, place.first);
  const std::uint32_t queries = present_queries(of.sizes, place.first);
  load_panel<T>(q, queries, of.q, start, of.sizes);
  load_panel<T>(dy, queries, saved.dy, start, of.sizes);
  __syncthreads();
  float lse[T::kRowsAThread] = {}, delta[T::kRowsAThread] = {};
  for (int r = 0; r < T::kRowsAThread; ++r) {
    delta[r] = sum_products<T>(dy, saved.y, start, of.sizes, r);
    if ((queries >> T::row(r) & 1) == 0) continue;
    const std::int64_t at = place.per_query(of.sizes, place.first + T::row(r));
    lse[r] = saved.lse[at];
    if (T::lane() == 0) saved.delta[at] = delta[r];
  }
  typename T::Results results;
  clear<T>(results);
  each_key_tile<T>(of, place, k, v, [&](std::int64_t first, std::uint32_t present) {
    typename T::Scores scores, products;
    multiply_features<T>(q, k, scores);
    multiply_features<T>(dy, v, products);
    KEEL_UNROLL
    for (int r = 0; r < T::kRowsAThread; ++r) {
      const std::int64_t i = place.first + T::row(r);
      const std::uint32_t kept = kept_keys<T>(of, dropout, i, first);
      for (int c = 0; c < T::kColsAThread; ++c) {
        const float keep = (kept >> T::col(c) & 1) != 0 ? of.factor : 0;
        const float p = exponential(of.scale * scores[r][c] - lse[r]);
        const float ds = p * (keep * products[r][c] - delta[r]);
        const float factor = of.is_narrow ? in_bf16(ds) : ds;
        exchange.at(T::row(r), T::col(c)) = sees(of, i, first, T::col(c), present) ? factor : 0;
      }
    }
    __syncwarp();
    add_products<T>(exchange, k, results);
    __syncwarp();
  });
  store_results<T>(dq, {start, of.sizes.queries - place.first}, of.sizes, results,
                   [&](int) { return of.scale; });
}

// What a tile of queries gives to the keys of a block: for each of its keys and each query the
// probability that is kept, and dS.
template <class T>
struct KeyGradients {
  const Attention& of;
  const Saved& saved;
  const AttentionPlace& place;
  const AttentionDropout& dropout;
  std::uint32_t present;  // the bits of the own keys
  typename T::Exchange &p_kept, &ds;

  // Takes those queries of the tile from `first` on that lie in column c of the scores.
  __device__ void take(int c, std::int64_t first, const typename T::Scores& scores,
                       const typename T::Scores& products) const {
    const std::int64_t i = first + T::col(c);
    const bool exists = i < of.sizes.queries;
    const std::int64_t at = place.per_query(of.sizes, exists ? i : 0);
    const float lse = saved.lse[at], delta = saved.delta[at];
    std::uint32_t kept = kAllLanes;
    for (int r = 0; r < T::kRowsAThread; ++r) {
      const std::int64_t j = place.first + T::row(r);
      if (of.has_dropout && (r == 0 || j % 4 == 0)) kept = dropout.four_keys(i, j);
      const float keep = (kept >> (j % 4) & 1) != 0 ? of.factor : 0;
      const bool is_seen = exists && sees(of, i, place.first, T::row(r), present);
      const float p = is_seen ? exponential(of.scale * scores[r][c] - lse) : 0;
      const float of_score = is_seen ? p * (keep * products[r][c] - delta) : 0;
      // dv has the factor of dropout apart from rounded probabilities.
      p_kept.at(T::row(r), T::col(c)) = !of.is_narrow ? keep * p : keep > 0 ? in_bf16(p) : 0;
      ds.at(T::row(r), T::col(c)) = of.is_narrow ? in_bf16(of_score) : of_score;
    }
  }
};

template <class T>
__global__ void __launch_bounds__(T::kBlock)
    differentiate_keys(Attention of, Saved saved, Global<float> dk, Global<float> dv) {
  __shared__ typename T::OwnPanel k, v;
  __shared__ typename T::OtherPanel q, dy;
  __shared__ typename T::Exchange p_kept, ds;
  const AttentionPlace place(of.sizes, of.sizes.keys, T::kOwn);
  const AttentionDropout dropout(of, place);
  const std::int64_t start = place.feature(of.sizes, of.sizes.keys, place.first);
  const std::uint32_t present = present_keys(of, place.row, place.first, T::kOwn);
  load_panel<T>(k, present, of.k, start, of.sizes);
  load_panel<T>(v, present, of.v, start, of.sizes);
  typename T::Results of_k, of_v;
  clear<T>(of_k);
  clear<T>(of_v);
  // The first query that sees the first key, rounded down to a tile.
  const std::int64_t seen_from = of.causal ? place.first - of.sizes.diagonal() : 0;
  std::int64_t first = seen_from > 0 ? seen_from / T::kOther * T::kOther : 0;
  if (present == 0) first = of.sizes.queries;
  const KeyGradients<T> gradients{of, saved, place, dropout, present, p_kept, ds};
  for (; first < of.sizes.queries; first += T::kOther) {
    const std::uint32_t queries = present_queries(of.sizes, first);
    const std::int64_t from = place.feature(of.sizes, of.sizes.queries, first);
    __syncthreads();
    load_panel<T>(q, queries, of.q, from, of.sizes);
    load_panel<T>(dy, queries, saved.dy, from, of.sizes);
    __syncthreads();
    typename T::Scores scores, products;
    multiply_features<T>(k, q, scores);
    multiply_features<T>(v, dy, products);
    for (int c = 0; c < T::kColsAThread; ++c) {
      gradients.take(c, first, scores, products);
    }
    __syncwarp();
    add_products<T>(p_kept, dy, of_v);
    add_products<T>(ds, q, of_k);
    __syncwarp();
  }
  const std::int64_t rows = of.sizes.keys - place.first;
  const float of_kept = of.is_narrow ? of.factor : 1;
  store_results<T>(dv, {start, rows}, of.sizes, of_v, [&](int) { return of_kept; });
  store_results<T>(dk, {start, rows}, of.sizes, of_k, [&](int) { return of.scale; });
}

}  // namespace

Prepared prepare_attention_backward(const NodeContext& context) {
  using In = AttentionInput;
  using Out = AttentionGradient;
  const Attention of = attention_of(context);
  const std::int64_t deltas = of.sizes.batch * of.sizes.heads * of.sizes.queries;
  const auto run = [of, deltas](const Binding& b) {
    const Attention bound = of.bound(b);
    const Saved saved{input(b.inputs[In::kY]), input(b.inputs[In::kLse]),
                      Factor(b.inputs[In::kDy], bound.is_narrow), workspace(b, deltas)};
    with_tile(of.sizes.width, [&]<class T>(std::type_identity<T>) {
      launch(differentiate_queries<T>, of.grid<T>(of.sizes.queries), bound, saved,
             output(b.outputs[Out::kDq]));
      launch(differentiate_keys<T>, of.grid<T>(of.sizes.keys), bound, saved,
             output(b.outputs[Out::kDk]), output(b.outputs[Out::kDv]));
    });
  };
  return kernel_of(run, deltas * std::int64_t(sizeof(float)));
}

}  // namespace keel::cuda
