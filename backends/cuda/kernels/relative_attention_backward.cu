// The backward of relative attention, in four kernels: dqk and dqp with a tile of queries a block,
// dk and dv with a tile of keys, the gradient of every distance with a tile of distances, and dp
// from these. Each recomputes the probabilities from the scores and lse. Beside factors of bf16,
// probabilities, dS and dy are rounded to bf16 before they are multiplied.
#include "backends/cuda/kernels/functions.cuh"
#include "backends/cuda/kernels/kernels.h"
#include "backends/cuda/kernels/relative_attention.cuh"

namespace keel::cuda {
namespace {

struct Saved {
  Global<const float> y, lse;
  Factor dy;
  Global<float> delta;  // (b, heads, queries), the sums of dy y
};

struct QueryGradients {
  Global<float> dqk, dqp;
};

template <class T>
__global__ void __launch_bounds__(T::kBlock)
    differentiate_queries(RelativeAttention of, Saved saved, QueryGradients to) {
  __shared__ QueryPanels<T> panels;
  __shared__ typename T::OwnPanel dy;
  __shared__ typename T::Exchange exchange;
  const std::int64_t queries = of.sizes.queries;
  const AttentionPlace place(of.plain, queries, T::kOwn);
  const std::int64_t start = place.feature(of.plain, queries, place.first);
  load_positions<T>(panels.qk, of, place, {of.qk, queries, place.first});
  load_positions<T>(panels.qp, of, place, {of.qp, queries, place.first});
  load_positions<T>(dy, of, place, {saved.dy, queries, place.first});
  __syncthreads();
  float lse[T::kRowsAThread] = {}, delta[T::kRowsAThread] = {};
  for (int r = 0; r < T::kRowsAThread; ++r) {
    delta[r] = sum_products<T>(dy, saved.y, start, of.plain, r);
    if (place.first + T::row(r) >= queries) continue;
    const std::int64_t at = place.per_query(of.plain, place.first + T::row(r));
    lse[r] = saved.lse[at];
    if (T::lane() == 0) saved.delta[at] = delta[r];
  }
  typename T::Results of_keys, of_distances;
  clear<T>(of_keys);
  clear<T>(of_distances);
  each_relative_tile<T>(of, place, panels, [&](std::int64_t first, typename T::Scores& scores) {
    typename T::Scores products;
    multiply_features<T>(dy, panels.v, products);
    KEEL_UNROLL
    for (int r = 0; r < T::kRowsAThread; ++r) {
      for (int c = 0; c < T::kColsAThread; ++c) {
        const bool is_seen = of.sees(place.row, place.first + T::row(r), first + T::col(c));
        const float p = exponential(of.scale * scores[r][c] - lse[r]);
        const float ds = is_seen ? p * (products[r][c] - delta[r]) : 0;
        exchange.at(T::row(r), T::col(c)) = of.is_narrow ? in_bf16(ds) : ds;
      }
    }
    __syncwarp();
    add_products<T>(exchange, panels.k, of_keys);
    add_band<T>(exchange, panels.distances, of_distances, OwnLessOther<T>());
    __syncwarp();
  });
  const OwnRows rows{start, queries - place.first};
  store_results<T>(to.dqk, rows, of.plain, of_keys, [&](int) { return of.scale; });
  store_results<T>(to.dqp, rows, of.plain, of_distances, [&](int) { return of.scale; });
}

// A tile of queries that a block has loaded, and what it saved of query i.
template <class T>
struct OtherQueries {
  typename T::OtherPanel qk, qp, dy;

  __device__ void load(const RelativeAttention& of, const AttentionPlace& place, const Saved& saved,
                       std::int64_t first) {
    load_positions<T>(qk, of, place, {of.qk, of.sizes.queries, first});
    load_positions<T>(qp, of, place, {of.qp, of.sizes.queries, first});
    load_positions<T>(dy, of, place, {saved.dy, of.sizes.queries, first});
  }
};
struct QueryOf {
  float lse = 0, delta = 0;

  __device__ QueryOf(const RelativeAttention& of, const AttentionPlace& place, const Saved& saved,
                     std::int64_t i) {
    if (i >= of.sizes.queries) return;
    const std::int64_t at = place.per_query(of.plain, i);
    lse = saved.lse[at], delta = saved.delta[at];
  }
};

struct KeyGradients {
  Global<float> dk, dv;
};

template <class T>
__global__ void __launch_bounds__(T::kBlock)
    differentiate_keys(RelativeAttention of, Saved saved, KeyGradients to) {
  __shared__ typename T::OwnPanel k, v;
  __shared__ OtherQueries<T> queries;
  __shared__ Band<T> distances;
  __shared__ typename T::Exchange p_seen, ds;
  const std::int64_t memory = of.sizes.memory();
  const AttentionPlace place(of.plain, of.sizes.keys, T::kOwn);
  load_positions<T>(k, of, place, {of.k, of.sizes.keys, place.first});
  load_positions<T>(v, of, place, {of.v, of.sizes.keys, place.first});
  typename T::Results of_k, of_v;
  clear<T>(of_k);
  clear<T>(of_v);
  // The first query that sees the first key, rounded down to a tile.
  const std::int64_t seen_from = place.first - memory;
  std::int64_t first = seen_from > 0 ? seen_from / T::kOther * T::kOther : 0;
  for (; first < of.sizes.queries; first += T::kOther) {
    const std::int64_t least = first + memory - place.first - (T::kOwn - 1);
    __syncthreads();
    queries.load(of, place, saved, first);
    load_rows<T>(distances, of.p, of.sizes.width,
                 [&](int n) { return of.distance_at(place.head, least + n); });
    __syncthreads();
    typename T::Scores scores, products;
    multiply_features<T>(k, queries.qk, scores);
    add_dots<T>(scores, queries.qp, distances, OtherRow(), OtherLessOwn<T>());
    multiply_features<T>(v, queries.dy, products);
    for (int c = 0; c < T::kColsAThread; ++c) {
      const std::int64_t i = first + T::col(c);
      const QueryOf query(of, place, saved, i);
      for (int r = 0; r < T::kRowsAThread; ++r) {
        const bool is_seen = of.sees(place.row, i, place.first + T::row(r));
        const float p = is_seen ? exponential(of.scale * scores[r][c] - query.lse) : 0;
        const float of_score = is_seen ? p * (products[r][c] - query.delta) : 0;
        p_seen.at(T::row(r), T::col(c)) = of.is_narrow ? in_bf16(p) : p;
        ds.at(T::row(r), T::col(c)) = of.is_narrow ? in_bf16(of_score) : of_score;
      }
    }
    __syncwarp();
    add_products<T>(p_seen, queries.dy, of_v);
    add_products<T>(ds, queries.qk, of_k);
    __syncwarp();
  }
  const OwnRows rows{place.feature(of.plain, of.sizes.keys, place.first),
                     of.sizes.keys - place.first};
  store_results<T>(to.dv, rows, of.plain, of_v, [](int) { return 1.0f; });
  store_results<T>(to.dk, rows, of.plain, of_k, [&](int) { return of.scale; });
}

// The rows of a batch in parts of neighbours, whose gradients of distances blocks compute at the
// same time and which are then added up in their order.
struct RowParts {
  static constexpr std::int64_t kMostFloats = 4 << 20;  // of all parts, unless one has more
  std::int64_t each, count;

  explicit RowParts(const RelativeSizes& sizes) {
    const std::int64_t floats = std::max<std::int64_t>(sizes.keys * sizes.features(), 1);
    const std::int64_t most = std::max<std::int64_t>(kMostFloats / floats, 1);
    each = std::max<std::int64_t>(ceil_div(sizes.batch, most), 1);
    count = ceil_div(sizes.batch, each);
  }
};

// The gradient of each distance (parts, keys, d), from the rows of a part, one after the other.
// Query i meets distance r at key i + memory - r.
template <class T>
__global__ void __launch_bounds__(T::kBlock)
    differentiate_distances(RelativeAttention of, Saved saved, RowParts parts, Global<float> to) {
  __shared__ typename T::OwnPanel p;
  __shared__ OtherQueries<T> queries;
  __shared__ Band<T> band;  // of keys, then of their values
  __shared__ typename T::Exchange ds;
  const std::int64_t memory = of.sizes.memory();
  AttentionSizes rows = of.plain;
  rows.batch = parts.count;
  AttentionPlace place(rows, of.sizes.keys, T::kOwn);
  const std::int64_t part = place.row, next = (part + 1) * parts.each;
  const std::int64_t end = next < of.sizes.batch ? next : of.sizes.batch;
  load_rows<T>(p, of.p, of.sizes.width,
               [&](int n) { return of.distance_at(place.head, place.first + n); });
  typename T::Results results;
  clear<T>(results);
  const std::int64_t seen_from = place.first - memory;
  const std::int64_t start = seen_from > 0 ? seen_from / T::kOther * T::kOther : 0;
  for (place.row = part * parts.each; place.row < end; ++place.row) {
    for (std::int64_t first = start; first < of.sizes.queries; first += T::kOther) {
      const std::int64_t least = first + memory - place.first - (T::kOwn - 1);
      const auto key_at = [&](int n) { return of.key_at(place, least + n); };
      typename T::Scores scores, products = {};
      __syncthreads();
      queries.load(of, place, saved, first);
      load_rows<T>(band, of.k, of.sizes.width, key_at);
      __syncthreads();
      multiply_features<T>(p, queries.qp, scores);
      add_dots<T>(scores, queries.qk, band, OtherRow(), OtherLessOwn<T>());
      __syncthreads();
      load_rows<T>(band, of.v, of.sizes.width, key_at);
      __syncthreads();
      add_dots<T>(products, queries.dy, band, OtherRow(), OtherLessOwn<T>());
      for (int c = 0; c < T::kColsAThread; ++c) {
        const std::int64_t i = first + T::col(c);
        const QueryOf query(of, place, saved, i);
        for (int r = 0; r < T::kRowsAThread; ++r) {
          const std::int64_t j = i + memory - (place.first + T::row(r));
          const bool is_seen = j >= 0 && of.sees(place.row, i, j);
          const float probability = is_seen ? exponential(of.scale * scores[r][c] - query.lse) : 0;
          const float of_score = is_seen ? probability * (products[r][c] - query.delta) : 0;
          ds.at(T::row(r), T::col(c)) = of.is_narrow ? in_bf16(of_score) : of_score;
        }
      }
      __syncwarp();
      add_products<T>(ds, queries.qp, results);
      __syncwarp();
    }
  }
  const std::int64_t at =
      (part * of.sizes.keys + place.first) * of.sizes.features() + place.head * of.sizes.width;
  store_results<T>(to, {at, of.sizes.keys - place.first}, of.plain, results,
                   [&](int) { return of.scale; });
}

// dp from the gradients of all distances in all parts; the last row takes all distances from its
// own on.
__global__ void collect_distances(RelativeSizes sizes, std::int64_t parts, Global<const float> from,
                                  Global<float> dp) {
  const std::int64_t d = sizes.features();
  for (std::int64_t e = grid_thread(); e < sizes.distances * d; e += grid_threads()) {
    const std::int64_t r = e / d, end = r == sizes.distances - 1 ? sizes.keys : r + 1;
    float sum = 0;
    for (std::int64_t part = 0; part < parts; ++part) {
      const std::int64_t first = part * sizes.keys * d + e % d;
      for (std::int64_t distance = r; distance < end; ++distance) sum += from[first + distance * d];
    }
    dp[e] = sum;
  }
}

}  // namespace

Prepared prepare_relative_attention_backward(const NodeContext& context) {
  using In = RelativeAttentionInput;
  using Out = RelativeAttentionGradient;
  const RelativeAttention of = relative_attention_of(context);
  const RelativeSizes sizes = of.sizes;
  const std::int64_t heads = sizes.batch * sizes.heads, deltas = heads * sizes.queries;
  const RowParts parts(sizes);
  const std::int64_t distances = parts.count * sizes.keys * sizes.features();
  const auto run = [=](const Binding& b) {
    const RelativeAttention bound = of.bound(b);
    const Saved saved{input(b.inputs[In::kY]), input(b.inputs[In::kLse]),
                      Factor(b.inputs[In::kDy], bound.is_narrow),
                      workspace(b, deltas, distances * std::int64_t(sizeof(float)))};
    const Global<float> of_distances = workspace(b, distances);
    with_relative_tile(sizes.width, [&]<class T>(std::type_identity<T>) {
      launch(differentiate_queries<T>, of.grid<T>(heads, sizes.queries), bound, saved,
             QueryGradients{output(b.outputs[Out::kDqk]), output(b.outputs[Out::kDqp])});
      launch(differentiate_keys<T>, of.grid<T>(heads, sizes.keys), bound, saved,
             KeyGradients{output(b.outputs[Out::kDk]), output(b.outputs[Out::kDv])});
      launch(differentiate_distances<T>, of.grid<T>(parts.count * sizes.heads, sizes.keys), bound,
             saved, parts, of_distances);
    });
    launch(collect_distances, one_thread_each(sizes.distances * sizes.features()), sizes,
           parts.count, Global<const float>(of_distances), output(b.outputs[Out::kDp]));
  };
  return kernel_of(run, (deltas + distances) * std::int64_t(sizeof(float)));
}

}  // namespace keel::cuda
