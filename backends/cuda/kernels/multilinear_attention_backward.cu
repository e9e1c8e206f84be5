// The backward of multi-linear attention, a chunk of sequences after the other. Only dout and dp
// are sums over sequences, both in their order.
#include "backends/cuda/kernels/kernels.h"
#include "backends/cuda/kernels/multilinear.cuh"
#include "backends/cuda/kernels/reduction.cuh"

namespace keel::cuda {
namespace {

// The tensors that the gradients of queries and keys read beside M, which stands in the place of H,
// and write.
struct SmallGradients {
  Sequences s;
  Global<float> da, dc, dk, dp;  // dp of each sequence

  // Element (query, key, r) of M.
  __device__ float m(std::int64_t row, std::int64_t j, std::int64_t r) const {
    return s.h[row * s.of.keys() + j * s.of.sizes.rank + r];
  }
};

// A thread computes da and dc of one query and r.
__global__ void differentiate_queries(SmallGradients g) {
  const Sequences& s = g.s;
  const MultilinearSizes& sizes = s.of.sizes;
  const std::int64_t rank = sizes.rank, before = s.first * s.of.keys();
  for (std::int64_t e = grid_thread(); e < s.rows() * rank; e += grid_threads()) {
    const std::int64_t row = e / rank, r = e % rank, met = s.of.seen(row % sizes.positions);
    const std::int64_t keys = before + row / sizes.positions * s.of.keys() + r;
    float da = 0, dc = 0;
    for (std::int64_t j = 0; j < met; ++j) {
      const float m = g.m(row, j, r);
      da = fmaf(m, s.of.k[keys + j * rank], da);
      dc = fmaf(m, s.of.p[j * rank + r], dc);
    }
    g.da[before + e] = da, g.dc[before + e] = dc;
  }
}

// A thread computes dk of one key and r, and what its sequence adds to dp there.
__global__ void differentiate_keys(SmallGradients g) {
  const Sequences& s = g.s;
  const MultilinearSizes& sizes = s.of.sizes;
  const std::int64_t rank = sizes.rank, before = s.first * s.of.keys();
  for (std::int64_t e = grid_thread(); e < s.rows() * rank; e += grid_threads()) {
    const std::int64_t r = e % rank, j = e / rank % sizes.positions;
    const std::int64_t row = e / s.of.keys() * sizes.positions;  // of the sequence's first query
    float dk = 0, dp = 0;
    for (std::int64_t i = s.of.causal ? j : 0; i < sizes.positions; ++i) {
      const std::int64_t query = before + (row + i) * rank + r;
      const float m = g.m(row + i, j, r);
      dk = fmaf(s.of.a[query], m, dk);
      dp = fmaf(s.of.c[query], m, dp);
    }
    g.dk[before + e] = dk, g.dp[before + e] = dp;
  }
}

// dout += T^T dy of a chunk: a sum over its queries.
class OutGradient {
 public:
  explicit OutGradient(const ChunkPlan& plan) {
    const MultilinearSizes& s = plan.sizes;
    const auto planned = [&](std::int64_t sequences) {
      return plan_product({.sizes = {1, s.pairs(), sequences * s.positions, s.features, false},
                           .transpose_a = true,
                           .alignment = plan.alignment});
    };
    if (plan.chunks() > 1) whole_ = planned(plan.length);
    last_ = planned(plan.count(plan.last()));
  }
  std::int64_t workspace() const { return std::max(whole_.workspace, last_.workspace); }
  void operator()(const Sequences& s, const float* dy, float* dout) const {
    (s.is_last ? last_ : whole_)({s.t.data(), dy, nullptr, dout, s.product_memory, s.first > 0});
  }

 private:
  ProductPlan whole_, last_;
};

struct Backward {
  Multilinear of;
  Reduction sequences;    // of dp
  std::int64_t dp_bytes;  // of dp of each sequence
  ChunkPlan chunks;
  ChunkProduct times_v, times_dy, values, collectives;
  OutGradient out;

  explicit Backward(const Multilinear& m)
      : of(m),
        sequences(make_reduction({m.sizes.batch, m.keys()}, {0})),
        dp_bytes(ChunkPlan::aligned(m.sizes.batch * m.keys() * ChunkPlan::kFloat)),
        chunks(m, dp_bytes + partial_bytes<double>(sequences)),
        times_v(chunks, tile_of(m.sizes)),
        times_dy(chunks, tile_gradient(m.sizes)),
        values(chunks, value_gradient(m.sizes)),
        collectives(chunks, collective_gradient(m.sizes)),
        out(chunks) {}

  std::int64_t workspace() const {
    return chunks.products_at +
           std::max({times_v.workspace(), times_dy.workspace(), values.workspace(),
                     collectives.workspace(), out.workspace()});
  }
  // G = dy out^T
  static Product tile_gradient(const MultilinearSizes& s) {
    return {.sizes = {1, s.positions, s.features, s.pairs(), true}, .transpose_b = true};
  }
  // dv = G^T H
  static Product value_gradient(const MultilinearSizes& s) {
    return {.sizes = {1, s.positions, s.pairs(), s.rank, false}, .transpose_a = true};
  }
  // M = G v
  static Product collective_gradient(const MultilinearSizes& s) {
    return {.sizes = {1, s.pairs(), s.positions, s.rank, false}};
  }

  void run(const Binding& b) const {
    using Out = MultilinearGradient;
    const Multilinear bound = bound_to(of, b);
    const Global<float> dp = cuda::workspace(b, of.sizes.batch * of.keys(), chunks.end);
    const auto of_chunk = [&](const Sequences& s, int place) {
      return s.part(output(b.outputs[std::size_t(place)]), of.keys()).data();
    };
    for (std::int64_t i = 0; i < chunks.chunks(); ++i) {
      const Sequences s(bound, chunks, b, i);
      const Global<const float> v = s.part(bound.v, of.keys()), dy = s.part(bound.dy, of.results());
      fill_tile(s, times_v);
      out(s, dy.data(), output(b.outputs[Out::kDout]).data());
      times_dy(s, dy.data(), bound.out.data(), s.t.data());
      mask(s);
      values(s, s.t.data(), s.h.data(), of_chunk(s, Out::kDv));
      collectives(s, s.t.data(), v.data(), s.h.data());
      const SmallGradients small{s, output(b.outputs[Out::kDa]), output(b.outputs[Out::kDc]),
                                 output(b.outputs[Out::kDk]), dp};
      launch(differentiate_queries, one_thread_each(s.rows() * of.sizes.rank), small);
      launch(differentiate_keys, one_thread_each(s.rows() * of.sizes.rank), small);
    }
    reduce<Add>(sequences, Elements<double, float>{dp},
                cuda::workspace<double>(b, 0, chunks.end + dp_bytes).data(),
                StoreQuotient{output(b.outputs[Out::kDp])});
  }
};

}  // namespace

Prepared prepare_multilinear_attention_backward(const NodeContext& context) {
  const Backward backward(multilinear_of(context));
  return kernel_of([backward](const Binding& b) { backward.run(b); }, backward.workspace());
}

}  // namespace keel::cuda
