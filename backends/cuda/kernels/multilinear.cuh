// The data of the kernels of multi-linear attention: T of all queries of some sequences at a time,
// as products of matrices. With H of (query i, key j) in rows and the rank in columns,
//   T = H v^T  of each sequence: (n n, rank) by (rank, n), masked
//   y = T out  of all in one: (queries, n n) by (n n, d)
#pragma once

#include <algorithm>
#include <numeric>

#include "backends/cuda/device.h"
#include "backends/cuda/matmul.h"
#include "backends/cuda/multilinear_bytes.h"
#include "src/ops/multilinear_attention.h"

namespace keel::cuda {

inline constexpr int kMultilinearWarps = 8, kMultilinearBlock = kMultilinearWarps * kWarp;

struct Multilinear {
  MultilinearSizes sizes;
  bool causal;
  Global<const float> a, c, k, p, v, out, dy;

  // The keys that query i meets.
  __host__ __device__ std::int64_t seen(std::int64_t i) const {
    return causal ? i + 1 : sizes.positions;
  }
  // Floats of a sequence: of a, k, v and their like, of y, of T, and of H.
  __host__ __device__ std::int64_t keys() const { return sizes.positions * sizes.rank; }
  std::int64_t results() const { return sizes.positions * sizes.features; }
  __host__ __device__ std::int64_t tile() const { return sizes.positions * sizes.pairs(); }
  __host__ __device__ std::int64_t collectives() const { return sizes.pairs() * sizes.rank; }
};

inline Multilinear multilinear_of(const NodeContext& context) {
  using In = MultilinearInput;
  return {multilinear_sizes(context.input(In::kA).shape, context.input(In::kOut).shape),
          context.attrs<MultilinearAttrs>().causal,
          {},
          {},
          {},
          {},
          {},
          {},
          {}};
}

inline Multilinear bound_to(Multilinear of, const Binding& b) {
  using In = MultilinearInput;
  of.a = input(b.inputs[In::kA]), of.c = input(b.inputs[In::kC]);
  of.k = input(b.inputs[In::kK]), of.p = input(b.inputs[In::kP]);
  of.v = input(b.inputs[In::kV]), of.out = input(b.inputs[In::kOut]);
  if (b.inputs.size() > In::kDy) of.dy = input(b.inputs[In::kDy]);
  return of;
}

// How many sequences are taken at a time, and the workspace: that of T, of H, `more` bytes that
// begin at `end`, and that of products. The sizes of a chunk do not depend on the batch, so neither
// do the algorithms of products.
struct ChunkPlan {
  MultilinearSizes sizes;
  std::int64_t length, tile, collectives, alignment, h_at, end, products_at;

  explicit ChunkPlan(const Multilinear& of, std::int64_t more = 0)
      : sizes(of.sizes), tile(of.tile()), collectives(of.collectives()) {
    const std::int64_t bytes = (tile + collectives) * kFloat;
    length = std::max<std::int64_t>(most_multilinear_bytes / bytes, 1);
    constexpr std::int64_t kUnit = std::int64_t(kAlignment) / kFloat;  // floats
    if (length > kUnit) length -= length % kUnit;  // chunks of tensors are aligned, too
    alignment = std::gcd(kUnit, std::gcd(length * of.keys(), length * of.results())) * kFloat;
    const std::int64_t most = std::min(length, sizes.batch);
    h_at = aligned(most * tile * kFloat);
    end = h_at + aligned(most * collectives * kFloat);
    products_at = end + aligned(more);
  }
  // One at least, if of no sequences: products of nothing are zero.
  std::int64_t chunks() const { return std::max<std::int64_t>(ceil_div(sizes.batch, length), 1); }
  std::int64_t last() const { return chunks() - 1; }
  // The sequences of chunk i.
  std::int64_t count(std::int64_t i) const { return std::min(length, sizes.batch - i * length); }

  static constexpr auto kFloat = std::int64_t(sizeof(float));
  static std::int64_t aligned(std::int64_t bytes) { return ceil_div(bytes, 256) * 256; }
};

// Sequences [first, first + count). H and T have a row for each query of a chunk.
struct Sequences {
  Multilinear of;
  std::int64_t first, count;
  bool is_last;
  Global<float> t, h;  // later those of their gradients: G in place of T, M in place of H
  void* product_memory;

  Sequences(const Multilinear& m, const ChunkPlan& plan, const Binding& b, std::int64_t chunk)
      : of(m),
        first(chunk * plan.length),
        count(plan.count(chunk)),
        is_last(chunk == plan.last()),
        t(workspace(b, count * plan.tile)),
        h(workspace(b, count * plan.collectives, plan.h_at)),
        product_memory(workspace<std::byte>(b, 0, plan.products_at).data()) {}

  __host__ __device__ std::int64_t rows() const { return count * of.sizes.positions; }
  // The elements of these sequences in a tensor that has `each` elements for one.
  template <class T>
  Global<T> part(const Global<T>& all, std::int64_t each) const {
    return {all.data() + first * each, count * each};
  }
};

// A product for each chunk: all have the algorithm of a whole one.
class ChunkProduct {
 public:
  // `sizes` and transposes are those of one sequence.
  ChunkProduct(const ChunkPlan& plan, Product product) {
    product.planned_batch = plan.length;
    product.alignment = plan.alignment;
    const auto planned = [&](std::int64_t batch) {
      product.sizes.batch = batch;
      return plan_product(product);
    };
    if (plan.chunks() > 1) whole_ = planned(plan.length);
    last_ = planned(plan.count(plan.last()));
  }
  std::int64_t workspace() const { return std::max(whole_.workspace, last_.workspace); }
  void operator()(const Sequences& s, const float* a, const float* b, float* y) const {
    (s.is_last ? last_ : whole_)({a, b, nullptr, y, s.product_memory});
  }

 private:
  ProductPlan whole_, last_;
};

// T = H v^T
inline Product tile_of(const MultilinearSizes& s) {
  return {.sizes = {1, s.pairs(), s.rank, s.positions, false}, .transpose_b = true};
}

// H_ijr = a_ir k_jr + c_ir p_jr, or 0 where query i does not meet key j. A block has a query, a
// warp some keys.
__global__ static void fill_h(Sequences s) {
  const Multilinear& of = s.of;
  const std::int64_t n = of.sizes.positions, rank = of.sizes.rank, row = blockIdx.x;
  const std::int64_t query = (s.first * n + row) * rank, keys = (s.first + row / n) * of.keys();
  const std::int64_t met = of.seen(row % n);
  for (std::int64_t j = threadIdx.x / kWarp; j < n; j += kMultilinearWarps) {
    for (std::int64_t r = threadIdx.x % kWarp; r < rank; r += kWarp) {
      const float content = of.a[query + r] * of.k[keys + j * rank + r];
      const float h = fmaf(of.c[query + r], of.p[j * rank + r], content);
      s.h[row * of.keys() + j * rank + r] = j < met ? h : 0;
    }
  }
}

// Clears T, or G, where it is masked. A block has a query, a warp some keys.
__global__ static void mask_tile(Sequences s) {
  const std::int64_t n = s.of.sizes.positions, row = blockIdx.x, met = s.of.seen(row % n);
  for (std::int64_t j = threadIdx.x / kWarp; j < n; j += kMultilinearWarps) {
    for (std::int64_t k = threadIdx.x % kWarp; k < n; k += kWarp) {
      if (j >= met || k >= met) s.t[(row * n + j) * n + k] = 0;
    }
  }
}

inline void mask(const Sequences& s) {
  if (s.of.causal) launch(mask_tile, {s.rows(), kMultilinearBlock}, s);
}

// H, and T by the product tile_of().
inline void fill_tile(const Sequences& s, const ChunkProduct& times_v) {
  launch(fill_h, {s.rows(), kMultilinearBlock}, s);
  times_v(s, s.h.data(), s.part(s.of.v, s.of.keys()).data(), s.t.data());
  mask(s);
}

}  // namespace keel::cuda
