// The backward of multi-linear attention, a group of queries after the other. Sums over groups are
// added to in their order.
#include "backends/cuda/kernels/kernels.h"
#include "backends/cuda/kernels/multilinear.cuh"

namespace keel::cuda {
namespace {

// dout += T^T dy
struct OutGradient {
  QueryGroup group;
  Global<const float> t;
  Global<float> dout;
  std::int64_t columns;

  __device__ std::int64_t rows() const { return group.pairs(); }
  __device__ std::int64_t terms() const { return group.rows(); }
  __device__ float a(std::int64_t pair, std::int64_t row) const {
    return t[row * group.pairs() + pair];
  }
  __device__ float b(std::int64_t row, std::int64_t f) const {
    return group.of.dy[group.feature(row, f)];
  }
  __device__ void store(std::int64_t pair, std::int64_t f, float sum) const {
    dout[group.weight(pair, f)] += sum;
  }
};

// G = dy out^T, 0 where T is masked
struct TileGradient {
  QueryGroup group;
  Global<float> g;
  std::int64_t columns;

  __device__ std::int64_t rows() const { return group.rows(); }
  __device__ std::int64_t terms() const { return group.of.sizes.features; }
  __device__ float a(std::int64_t row, std::int64_t f) const {
    return group.of.dy[group.feature(row, f)];
  }
  __device__ float b(std::int64_t f, std::int64_t pair) const {
    return group.of.out[group.weight(pair, f)];
  }
  __device__ void store(std::int64_t row, std::int64_t pair, float sum) const {
    g[row * group.pairs() + pair] = group.meets(row, pair) ? sum : 0;
  }
};

// What the gradients of queries, keys and values read and write.
struct SmallGradients {
  QueryGroup group;
  Global<const float> g;
  Global<float> m;                         // (rows, seen, rank)
  Global<float> da, dc, dk, dv, dp_parts;  // dp of each sequence
};

// M_jr = sum over k of G_jk v_kr. A thread computes one element.
__global__ void fill_m(SmallGradients s) {
  const QueryGroup& group = s.group;
  const std::int64_t rank = group.of.sizes.rank, all = group.rows() * group.seen * rank;
  for (std::int64_t e = grid_thread(); e < all; e += grid_threads()) {
    const std::int64_t r = e % rank, pair = e / rank * group.seen;
    const std::int64_t value = group.of.row(group.sequence(e / rank / group.seen), 0);
    float sum = 0;
    for (std::int64_t k = 0; k < group.seen; ++k) {
      sum = fmaf(s.g[pair + k], group.of.v[(value + k) * rank + r], sum);
    }
    s.m[e] = sum;
  }
}

// A thread computes da and dc of one query and r.
__global__ void differentiate_queries(SmallGradients s) {
  const QueryGroup& group = s.group;
  const std::int64_t rank = group.of.sizes.rank;
  for (std::int64_t e = grid_thread(); e < group.rows() * rank; e += grid_threads()) {
    const std::int64_t row = e / rank, r = e % rank, sequence = group.sequence(row);
    float da = 0, dc = 0;
    for (std::int64_t j = 0; j < group.seen; ++j) {
      const float m = s.m[(row * group.seen + j) * rank + r];
      da = fmaf(m, group.of.k[group.of.row(sequence, j) * rank + r], da);
      dc = fmaf(m, group.of.p[j * rank + r], dc);
    }
    const std::int64_t at = group.of.row(sequence, group.query(row)) * rank + r;
    s.da[at] = da, s.dc[at] = dc;
  }
}

// A thread adds the group's part to dk, dv and dp of one sequence, position and r.
__global__ void differentiate_keys(SmallGradients s) {
  const QueryGroup& group = s.group;
  const std::int64_t rank = group.of.sizes.rank, own = group.seen * rank;
  for (std::int64_t e = grid_thread(); e < group.of.sizes.batch * own; e += grid_threads()) {
    const std::int64_t sequence = e / own, at = e % own / rank, r = e % rank;
    float dk = 0, dp = 0, dv = 0;
    for (std::int64_t q = 0; q < group.count; ++q) {
      const std::int64_t row = sequence * group.count + q, i = group.first + q;
      const std::int64_t query = group.of.row(sequence, i) * rank + r;
      const float m = s.m[(row * group.seen + at) * rank + r];
      dk = fmaf(group.of.a[query], m, dk);
      dp = fmaf(group.of.c[query], m, dp);
      for (std::int64_t j = 0; j < group.seen; ++j) {
        const float g = s.g[(row * group.seen + j) * group.seen + at];
        dv = fmaf(g, group.of.meets(sequence, i, j, r), dv);
      }
    }
    const std::int64_t place = group.of.row(sequence, at) * rank + r;
    s.dk[place] += dk, s.dp_parts[place] += dp, s.dv[place] += dv;
  }
}

__global__ void clear(Global<float> x) {
  for (std::int64_t e = grid_thread(); e < x.size(); e += grid_threads()) x[e] = 0;
}

// dp is the sum over sequences, in their order.
__global__ void add_sequences(std::int64_t sequences, Global<const float> parts, Global<float> dp) {
  for (std::int64_t e = grid_thread(); e < dp.size(); e += grid_threads()) {
    float sum = 0;
    for (std::int64_t s = 0; s < sequences; ++s) sum += parts[s * dp.size() + e];
    dp[e] = sum;
  }
}

// The floats of the parts of the workspace.
struct Parts {
  std::int64_t tile, m, dp;
  explicit Parts(const MultilinearSizes& sizes)
      : tile(group_tile(sizes)),
        m(sizes.batch * std::min(kGroupQueries, sizes.positions) * sizes.positions * sizes.rank),
        dp(sizes.batch * sizes.positions * sizes.rank) {}
  std::int64_t bytes() const { return (2 * tile + m + dp) * std::int64_t(sizeof(float)); }
};

void clear_all(std::initializer_list<Global<float>> tensors) {
  for (const Global<float>& x : tensors) launch(clear, one_thread_each(x.size()), x);
}

void backward(const Binding& b, const Multilinear& of) {
  using Out = MultilinearGradient;
  const MultilinearSizes& sizes = of.sizes;
  const Parts parts(sizes);
  const auto part = [&](std::int64_t size, std::int64_t before) {
    return workspace(b, size, before * std::int64_t(sizeof(float)));
  };
  const Global<float> t = part(parts.tile, 0), g = part(parts.tile, parts.tile);
  const Global<float> m = part(parts.m, 2 * parts.tile);
  const Global<float> dp_parts = part(parts.dp, 2 * parts.tile + parts.m);
  const Global<float> dk = output(b.outputs[Out::kDk]), dv = output(b.outputs[Out::kDv]);
  const Global<float> dout = output(b.outputs[Out::kDout]), dp = output(b.outputs[Out::kDp]);
  clear_all({dk, dv, dout, dp_parts});
  for (std::int64_t first = 0; first < sizes.positions; first += kGroupQueries) {
    const QueryGroup group(of, first);
    const std::int64_t rows = group.rows(), own = group.seen * sizes.rank;
    launch(fill_t, one_thread_each(rows * group.pairs()), group, t);
    launch(tile_product<OutGradient>, tile_grid(group.pairs(), sizes.features),
           OutGradient{group, t, dout, sizes.features});
    launch(tile_product<TileGradient>, tile_grid(rows, group.pairs()),
           TileGradient{group, g, group.pairs()});
    const SmallGradients small{
        group, g, m, output(b.outputs[Out::kDa]), output(b.outputs[Out::kDc]), dk, dv, dp_parts};
    launch(fill_m, one_thread_each(rows * own), small);
    launch(differentiate_queries, one_thread_each(rows * sizes.rank), small);
    launch(differentiate_keys, one_thread_each(sizes.batch * own), small);
  }
  launch(add_sequences, one_thread_each(dp.size()), sizes.batch, dp_parts, dp);
}

}  // namespace

Prepared prepare_multilinear_attention_backward(const NodeContext& context) {
  const Multilinear of = multilinear_of(context);
  return kernel_of([of](const Binding& b) { backward(b, bound_to(of, b)); },
                   Parts(of.sizes).bytes());
}

}  // namespace keel::cuda
