// The backward of attention, for some heads and a range of their keys at a time. A kernel with a
// tile of keys a block recomputes the probabilities from q, k and lse, computes dk and dv, and
// leaves dS, the gradients of scores; one with a tile of queries a block multiplies it by k for dq.
// Beside factors of bf16, probabilities, dS and dy are rounded to bf16 before they are multiplied.
#include "backends/cuda/kernels/attention.cuh"
#include "backends/cuda/kernels/attention_gradients.cuh"
#include "backends/cuda/kernels/functions.cuh"
#include "backends/cuda/kernels/kernels.h"

namespace keel::cuda {
namespace {

// The factors that a tile of queries gives to the keys of a block: for each of its keys and each
// query the probability that is kept, and dS.
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

struct OfKeys {
  Global<float> dk, dv, ds;
};

template <class T>
__global__ void __launch_bounds__(T::kBlock)
    differentiate_keys(Attention of, Saved saved, Part part, OfKeys to) {
  __shared__ typename T::OwnPanel k, v;
  __shared__ typename T::OtherPanel q, dy;
  __shared__ typename T::Exchange p_kept, ds;
  AttentionPlace place(of.sizes, part.keys, T::kOwn, part.first_head);
  place.first += part.first_key;
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
    KEEL_UNROLL
    for (int c = 0; c < T::kColsAThread; ++c) {
      gradients.take(c, first, scores, products);
    }
    __syncwarp();
    part.store_tile<T>(of.sizes, place, first, ds, to.ds);
    add_products<T>(p_kept, dy, of_v);
    add_products<T>(ds, q, of_k);
    __syncwarp();
  }
  const std::int64_t rows = part.end() - place.first;
  const float of_kept = of.is_narrow ? of.factor : 1;
  store_results<T>(to.dv, {start, rows}, of.sizes, of_v, [&](int) { return of_kept; });
  store_results<T>(to.dk, {start, rows}, of.sizes, of_k, [&](int) { return of.scale; });
}

// Until the last range of keys, dq holds the sum so far, without the factor of the scores.
template <class T>
__global__ void __launch_bounds__(T::kBlock)
    differentiate_queries(Attention of, Part part, Global<const float> ds, Global<float> dq) {
  __shared__ typename T::OtherPanel k;
  __shared__ typename T::Exchange exchange;
  const std::int64_t queries = of.sizes.queries, end = part.end();
  const AttentionPlace place(of.sizes, queries, T::kOwn, part.first_head);
  const OwnRows rows{place.feature(of.sizes, queries, place.first), queries - place.first};
  typename T::Results results;
  clear<T>(results);
  if (part.first_key > 0) load_results<T>(dq, rows, of.sizes, results);
  const std::int64_t seen = keys_seen(of, place.first, T::kOwn), last = seen < end ? seen : end;
  for (std::int64_t first = part.first_key; first < last; first += T::kOther) {
    const std::uint32_t present = present_keys(of, place.row, first, T::kOther);
    if (present == 0) continue;
    __syncthreads();
    load_panel<T>(k, present, of.k, place.feature(of.sizes, of.sizes.keys, first), of.sizes);
    for (int item = int(threadIdx.x); item < T::kOwn * T::kOther; item += T::kBlock) {
      const int own = item % T::kOwn, other = item / T::kOwn;
      const std::int64_t i = place.first + own;
      const bool is_seen = i < queries && sees(of, i, first, other, present);
      exchange.at(own, other) = is_seen ? ds[part.row(of.sizes, place, first + other) + i] : 0;
    }
    __syncthreads();
    add_products<T>(exchange, k, results);
  }
  const float factor = end == of.sizes.keys ? of.scale : 1;
  store_results<T>(dq, rows, of.sizes, results, [&](int) { return factor; });
}

}  // namespace

Prepared prepare_attention_backward(const NodeContext& context) {
  using In = AttentionInput;
  using Out = AttentionGradient;
  const Attention of = attention_of(context);
  const PartSizes each(of.sizes, 1);
  const std::int64_t deltas = of.sizes.batch * of.sizes.heads * of.sizes.queries;
  const std::int64_t gradients = each.gradients(of.sizes);
  const auto run = [of, each, deltas, gradients](const Binding& b) {
    const Attention bound = of.bound(b);
    const Saved saved{input(b.inputs[In::kY]), input(b.inputs[In::kLse]),
                      Factor(b.inputs[In::kDy], bound.is_narrow), workspace(b, deltas)};
    const auto ds = workspace(b, gradients, deltas * std::int64_t(sizeof(float)));
    const auto dq = output(b.outputs[Out::kDq]);
    const OfKeys of_keys{output(b.outputs[Out::kDk]), output(b.outputs[Out::kDv]), ds};
    with_tile(of.sizes.width, [&]<class T>(std::type_identity<T>) {
      launch(sum_gradients<T>, of.grid<T>(of.sizes.queries), of.sizes, saved);
      each_part(of.sizes, each, [&](const Part& part) {
        launch(differentiate_keys<T>, part.grid<T>(part.keys), bound, saved, part, of_keys);
        launch(differentiate_queries<T>, part.grid<T>(of.sizes.queries), bound, part,
               Global<const float>(ds), dq);
      });
    });
  };
  return kernel_of(run, (deltas + gradients) * std::int64_t(sizeof(float)));
}

}  // namespace keel::cuda
