// The backward of relative attention, for rows of the batch and a range of their keys at a time. A
// kernel with a tile of keys a block recomputes the probabilities from the scores and lse, computes
// dk and dv, and leaves dS, the gradients of scores. One with a tile of queries a block multiplies
// it by the keys and those of distances, for dqk and dqp; one with a tile of distances by the
// queries, for the gradient of every distance; and dp follows from these. Beside factors of bf16,
// probabilities, dS and dy are rounded to bf16 before they are multiplied.
#include "backends/cuda/kernels/attention_gradients.cuh"
#include "backends/cuda/kernels/kernels.h"
#include "backends/cuda/kernels/relative_attention.cuh"

namespace keel::cuda {
namespace {

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

struct OfKeys {
  Global<float> dk, dv, ds;
};

template <class T>
__global__ void __launch_bounds__(T::kBlock)
    differentiate_keys(RelativeAttention of, Saved saved, Part part, OfKeys to) {
  __shared__ typename T::OwnPanel k, v;
  __shared__ OtherQueries<T> queries;
  __shared__ Band<T> distances;
  __shared__ typename T::Exchange p_seen, ds;
  const std::int64_t memory = of.sizes.memory();
  AttentionPlace place(of.plain, part.keys, T::kOwn, part.first_head);
  place.first += part.first_key;
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
    part.store_tile<T>(of.plain, place, first, ds, to.ds);
    add_products<T>(p_seen, queries.dy, of_v);
    add_products<T>(ds, queries.qk, of_k);
    __syncwarp();
  }
  const OwnRows rows{place.feature(of.plain, of.sizes.keys, place.first), part.end() - place.first};
  store_results<T>(to.dv, rows, of.plain, of_v, [](int) { return 1.0f; });
  store_results<T>(to.dk, rows, of.plain, of_k, [&](int) { return of.scale; });
}

struct OfQueries {
  Global<float> dqk, dqp;
};

// Until the last range of keys, dqk and dqp hold the sums so far, without the factor of the scores.
template <class T>
__global__ void __launch_bounds__(T::kBlock)
    differentiate_queries(RelativeAttention of, Part part, Global<const float> ds, OfQueries to) {
  __shared__ typename T::OtherPanel k;
  __shared__ Band<T> distances;
  __shared__ typename T::Exchange exchange;
  const std::int64_t queries = of.sizes.queries, memory = of.sizes.memory();
  const AttentionPlace place(of.plain, queries, T::kOwn, part.first_head);
  const OwnRows rows{place.feature(of.plain, queries, place.first), queries - place.first};
  typename T::Results of_keys, of_distances;
  clear<T>(of_keys);
  clear<T>(of_distances);
  if (part.first_key > 0) {
    load_results<T>(to.dqk, rows, of.plain, of_keys);
    load_results<T>(to.dqp, rows, of.plain, of_distances);
  }
  const std::int64_t seen = place.first + T::kOwn + memory;
  const std::int64_t end = seen < part.end() ? seen : part.end();
  std::int64_t first = of.first_key(place.row, place.first) / T::kOther * T::kOther;
  if (first < part.first_key) first = part.first_key;
  for (; first < end; first += T::kOther) {
    const std::int64_t least = place.first + memory - first - (T::kOther - 1);
    __syncthreads();
    load_positions<T>(k, of, place, {of.k, of.sizes.keys, first});
    load_rows<T>(distances, of.p, of.sizes.width,
                 [&](int n) { return of.distance_at(place.head, least + n); });
    for (int item = int(threadIdx.x); item < T::kOwn * T::kOther; item += T::kBlock) {
      const int own = item % T::kOwn, other = item / T::kOwn;
      const std::int64_t i = place.first + own, j = first + other;
      const bool is_seen = j < end && of.sees(place.row, i, j);
      exchange.at(own, other) = is_seen ? ds[part.row(of.plain, place, j) + i] : 0;
    }
    __syncthreads();
    add_products<T>(exchange, k, of_keys);
    add_band<T>(exchange, distances, of_distances, OwnLessOther<T>());
  }
  const float factor = part.end() == of.sizes.keys ? of.scale : 1;
  store_results<T>(to.dqk, rows, of.plain, of_keys, [&](int) { return factor; });
  store_results<T>(to.dqp, rows, of.plain, of_distances, [&](int) { return factor; });
}

// The rows of a batch in groups of neighbours, whose gradients of distances blocks compute at the
// same time and which are then added up in their order.
struct RowGroups {
  std::int64_t each, count;

  explicit RowGroups(const RelativeSizes& sizes) {
    const std::int64_t floats = std::max<std::int64_t>(sizes.keys * sizes.features(), 1);
    const std::int64_t most = std::max<std::int64_t>(most_distance_gradients / floats, 1);
    each = std::max<std::int64_t>(ceil_div(sizes.batch, most), 1);
    count = ceil_div(sizes.batch, each);
  }
  // The first group that has rows of a part, and how many groups have any.
  __host__ __device__ std::int64_t first(const RelativeSizes& sizes, const Part& part) const {
    return part.first_head / sizes.heads / each;
  }
  std::int64_t of_part(const RelativeSizes& sizes, const Part& part) const {
    const std::int64_t last_row = (part.first_head + part.heads) / sizes.heads - 1;
    return last_row / each + 1 - first(sizes, part);
  }
};

// The rows of a group whose dS is in memory.
struct GroupRows {
  std::int64_t group, first, end;
  bool is_begun;  // other rows or keys of the group came before
  bool is_ended;  // none comes after

  __device__ GroupRows(const RelativeSizes& sizes, const RowGroups& groups, const Part& part,
                       std::int64_t group_of_part)
      : group(groups.first(sizes, part) + group_of_part) {
    const std::int64_t start = group * groups.each, from = part.first_head / sizes.heads;
    const std::int64_t after =
        start + groups.each < sizes.batch ? start + groups.each : sizes.batch;
    const std::int64_t to = from + part.heads / sizes.heads;
    first = from > start ? from : start;
    end = to < after ? to : after;
    is_begun = first > start || part.first_key > 0;
    is_ended = end == after && part.end() == sizes.keys;
  }
};

// The gradient of each distance (groups, keys, d), from the rows of a group, one after the other.
// Query i meets distance r at key i + memory - r, so that later queries meet a distance at later
// keys, and a part of some keys has one row: parts add up in the order of one part of everything.
template <class T>
__global__ void __launch_bounds__(T::kBlock)
    differentiate_distances(RelativeAttention of, Part part, RowGroups groups,
                            Global<const float> ds, Global<float> to) {
  __shared__ typename T::OtherPanel queries;
  __shared__ typename T::Exchange exchange;
  const std::int64_t memory = of.sizes.memory();
  AttentionPlace place(of.plain, of.sizes.keys, T::kOwn);
  const GroupRows rows(of.sizes, groups, part, place.row);
  const OwnRows own{(rows.group * of.sizes.keys + place.first) * of.sizes.features() +
                        place.head * of.sizes.width,
                    of.sizes.keys - place.first};
  typename T::Results results;
  clear<T>(results);
  if (rows.is_begun) load_results<T>(to, own, of.plain, results);
  // The first query that meets a distance of the tile at one of the keys, rounded down to a tile,
  // and the end of those that do.
  const std::int64_t seen_from = place.first + part.first_key - memory;
  const std::int64_t start = seen_from > 0 ? seen_from / T::kOther * T::kOther : 0;
  const std::int64_t met = place.first + T::kOwn - 1 + part.end() - memory;
  const std::int64_t end = met < of.sizes.queries ? met : of.sizes.queries;
  for (place.row = rows.first; place.row < rows.end; ++place.row) {
    for (std::int64_t first = start; first < end; first += T::kOther) {
      const std::int64_t least = first + memory - place.first - (T::kOwn - 1);
      __syncthreads();
      load_positions<T>(queries, of, place, {of.qp, of.sizes.queries, first});
      // Neighbouring threads read dS of neighbouring queries, which meet a key at neighbouring
      // distances.
      for (int item = int(threadIdx.x); item < T::kOwn * Band<T>::kCount; item += T::kBlock) {
        const int r = item % T::kOwn, n = item / T::kOwn, other = n + r - (T::kOwn - 1);
        if (other < 0 || other >= T::kOther) continue;
        const std::int64_t i = first + other, j = least + n;
        const bool is_seen = j >= part.first_key && j < part.end() && of.sees(place.row, i, j);
        exchange.at(r, other) = is_seen ? ds[part.row(of.plain, place, j) + i] : 0;
      }
      __syncthreads();
      add_products<T>(exchange, queries, results);
    }
  }
  const float factor = rows.is_ended ? of.scale : 1;
  store_results<T>(to, own, of.plain, results, [&](int) { return factor; });
}

// dp from the gradients of all distances in all groups; the last row takes all distances from its
// own on.
__global__ void collect_distances(RelativeSizes sizes, std::int64_t groups,
                                  Global<const float> from, Global<float> dp) {
  const std::int64_t d = sizes.features();
  for (std::int64_t e = grid_thread(); e < sizes.distances * d; e += grid_threads()) {
    const std::int64_t r = e / d, end = r == sizes.distances - 1 ? sizes.keys : r + 1;
    float sum = 0;
    for (std::int64_t group = 0; group < groups; ++group) {
      const std::int64_t first = group * sizes.keys * d + e % d;
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
  const RowGroups groups(sizes);
  const PartSizes each(of.plain, sizes.heads);
  const std::int64_t deltas = sizes.batch * sizes.heads * sizes.queries;
  const std::int64_t distances = groups.count * sizes.keys * sizes.features();
  const std::int64_t gradients = each.gradients(of.plain), size = sizeof(float);
  const auto run = [=](const Binding& b) {
    const RelativeAttention bound = of.bound(b);
    // The gradients of distances come first: they are written by fours, which have to be aligned.
    const Global<float> of_distances = workspace(b, distances);
    const Saved saved{input(b.inputs[In::kY]), input(b.inputs[In::kLse]),
                      Factor(b.inputs[In::kDy], bound.is_narrow),
                      workspace(b, deltas, distances * size)};
    const Global<float> ds = workspace(b, gradients, (distances + deltas) * size);
    const OfKeys of_keys{output(b.outputs[Out::kDk]), output(b.outputs[Out::kDv]), ds};
    const OfQueries of_queries{output(b.outputs[Out::kDqk]), output(b.outputs[Out::kDqp])};
    with_relative_tile(sizes.width, [&]<class T>(std::type_identity<T>) {
      launch(sum_gradients<T>, of.grid<T>(sizes.batch * sizes.heads, sizes.queries), of.plain,
             saved);
      each_part(of.plain, each, [&](const Part& part) {
        launch(differentiate_keys<T>, part.grid<T>(part.keys), bound, saved, part, of_keys);
        launch(differentiate_queries<T>, part.grid<T>(sizes.queries), bound, part,
               Global<const float>(ds), of_queries);
        launch(differentiate_distances<T>,
               of.grid<T>(groups.of_part(sizes, part) * sizes.heads, sizes.keys), bound, part,
               groups, Global<const float>(ds), of_distances);
      });
    });
    launch(collect_distances, one_thread_each(sizes.distances * sizes.features()), sizes,
           groups.count, Global<const float>(of_distances), output(b.outputs[Out::kDp]));
  };
  return kernel_of(run, (distances + deltas + gradients) * size);
}

}  // namespace keel::cuda
