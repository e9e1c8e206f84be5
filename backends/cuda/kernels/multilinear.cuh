// The data of the kernels of multi-linear attention: some queries of every sequence at a time.
#pragma once

#include "backends/cuda/kernels/tile_product.cuh"
#include "src/ops/multilinear_attention.h"

namespace keel::cuda {

inline constexpr std::int64_t kGroupQueries = 8;

struct Multilinear {
  MultilinearSizes sizes;
  bool causal;
  Global<const float> a, c, k, p, v, out, dy;

  __host__ __device__ std::int64_t seen(std::int64_t i) const {
    return causal ? i + 1 : sizes.positions;
  }
  // The place of position i of a sequence in the rows of a, k, y and their like.
  __host__ __device__ std::int64_t row(std::int64_t sequence, std::int64_t i) const {
    return sequence * sizes.positions + i;
  }
  // H_jr of a query
  __device__ float meets(std::int64_t sequence, std::int64_t i, std::int64_t j,
                         std::int64_t r) const {
    const std::int64_t query = row(sequence, i) * sizes.rank + r;
    const float content = a[query] * k[row(sequence, j) * sizes.rank + r];
    return fmaf(c[query], p[j * sizes.rank + r], content);
  }
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

// Queries [first, first + count) of every sequence. The rows of a group are (sequence, query); the
// pairs are those (j, k) that the last query meets, as j seen + k.
struct QueryGroup {
  Multilinear of;
  std::int64_t first, count, seen;

  QueryGroup(const Multilinear& m, std::int64_t from)
      : of(m),
        first(from),
        count(std::min(kGroupQueries, m.sizes.positions - from)),
        seen(m.seen(from + count - 1)) {}

  __host__ __device__ std::int64_t rows() const { return of.sizes.batch * count; }
  __host__ __device__ std::int64_t pairs() const { return seen * seen; }
  __device__ std::int64_t sequence(std::int64_t row) const { return row / count; }
  __device__ std::int64_t query(std::int64_t row) const { return first + row % count; }
  // Element (row, feature) of y or dy.
  __device__ std::int64_t feature(std::int64_t row, std::int64_t f) const {
    return of.row(sequence(row), query(row)) * of.sizes.features + f;
  }
  // Element (pair, feature) of `out`.
  __device__ std::int64_t weight(std::int64_t pair, std::int64_t f) const {
    return (pair / seen * of.sizes.positions + pair % seen) * of.sizes.features + f;
  }
  // Whether the row's query meets the pair.
  __device__ bool meets(std::int64_t row, std::int64_t pair) const {
    const std::int64_t met = of.seen(query(row));
    return pair / seen < met && pair % seen < met;
  }
};

// The floats of T, or of G, for the largest group.
inline std::int64_t group_tile(const MultilinearSizes& sizes) {
  return sizes.batch * std::min(kGroupQueries, sizes.positions) * sizes.pairs();
}

// T (rows, pairs) of a group. A thread computes one element.
__global__ static void fill_t(QueryGroup group, Global<float> t) {
  const Multilinear& of = group.of;
  for (std::int64_t e = grid_thread(); e < group.rows() * group.pairs(); e += grid_threads()) {
    const std::int64_t row = e / group.pairs(), pair = e % group.pairs();
    float sum = 0;
    if (group.meets(row, pair)) {
      const std::int64_t sequence = group.sequence(row), i = group.query(row);
      const std::int64_t j = pair / group.seen, value = of.row(sequence, pair % group.seen);
      for (std::int64_t r = 0; r < of.sizes.rank; ++r) {
        sum = fmaf(of.meets(sequence, i, j, r), of.v[value * of.sizes.rank + r], sum);
      }
    }
    t[e] = sum;
  }
}

}  // namespace keel::cuda
