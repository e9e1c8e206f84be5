// Shared code of the backwards of both kinds of attention: the sums of dy y, and dS, the gradients
// of scores, which one kernel leaves in memory for the next, for a part of heads and keys at a
// time.
#pragma once

#include <algorithm>

#include "backends/cuda/attention_parts.h"
#include "backends/cuda/kernels/attention.cuh"

namespace keel::cuda {

// The inputs that every gradient reads: y and the logarithms of its sums, which the forward has
// saved, dy, and the sums of dy y.
struct Saved {
  Global<const float> y, lse;
  Factor dy;
  Global<float> delta;  // (b, heads, queries), the sums of dy y
};

// The sums of dy y of every query in every head.
template <class T>
__global__ void __launch_bounds__(T::kBlock) sum_gradients(AttentionSizes sizes, Saved saved) {
  __shared__ typename T::OwnPanel dy;
  const AttentionPlace place(sizes, sizes.queries, T::kOwn);
  const std::int64_t start = place.feature(sizes, sizes.queries, place.first);
  const std::uint32_t queries = present_queries(sizes, place.first);
  load_panel<T>(dy, queries, saved.dy, start, sizes);
  __syncthreads();
  for (int r = 0; r < T::kRowsAThread; ++r) {
    const float delta = sum_products<T>(dy, saved.y, start, sizes, r);
    if ((queries >> T::row(r) & 1) == 0 || T::lane() != 0) continue;
    saved.delta[place.per_query(sizes, place.first + T::row(r))] = delta;
  }
}

// Heads of all rows, counted through, and keys of each, whose dS is in memory.
struct Part {
  std::int64_t first_head, heads, first_key, keys;

  // Where the dS of a key lies: dS (heads, keys, queries) of the part.
  __device__ std::int64_t row(const AttentionSizes& sizes, const AttentionPlace& place,
                              std::int64_t key) const {
    const std::int64_t head = place.row * sizes.heads + place.head - first_head;
    return (head * keys + key - first_key) * sizes.queries;
  }
  __host__ __device__ std::int64_t end() const { return first_key + keys; }
  template <class T>
  Grid grid(std::int64_t length) const {
    return {heads * ceil_div(length, T::kOwn), T::kBlock};
  }
  // Writes the dS of a tile of queries, from `first` on, for those keys and queries that exist.
  template <class T>
  __device__ void store_tile(const AttentionSizes& sizes, const AttentionPlace& place,
                             std::int64_t first, typename T::Exchange& tile,
                             Global<float> ds) const {
    for (int r = 0; r < T::kRowsAThread; ++r) {
      const std::int64_t j = place.first + T::row(r);
      if (j >= end()) continue;
      for (int c = 0; c < T::kColsAThread; ++c) {
        const std::int64_t i = first + T::col(c);
        if (i < sizes.queries) ds[row(sizes, place, j) + i] = tile.at(T::row(r), T::col(c));
      }
    }
  }
};

// How many heads, and how many keys of each, are computed at a time. Heads come in multiples of
// `together`, which divides those of all rows.
struct PartSizes {
  std::int64_t heads, keys;

  PartSizes(const AttentionSizes& sizes, std::int64_t together) {
    const std::int64_t groups = std::max<std::int64_t>(sizes.batch * sizes.heads / together, 1);
    const std::int64_t most =
        most_score_gradients / std::max<std::int64_t>(sizes.queries * together, 1);
    // Tiles begin where they do without parts, which gives the same bits.
    keys = std::min(sizes.keys, std::max<std::int64_t>(most / kWarp * kWarp, kWarp));
    heads = std::clamp<std::int64_t>(most / std::max<std::int64_t>(keys, 1), 1, groups) * together;
  }
  std::int64_t gradients(const AttentionSizes& sizes) const { return heads * keys * sizes.queries; }
};

// Calls f for one part after the other.
template <class F>
void each_part(const AttentionSizes& sizes, const PartSizes& each, const F& f) {
  const std::int64_t heads = sizes.batch * sizes.heads;
  for (std::int64_t head = 0; head < heads; head += each.heads) {
    std::int64_t key = 0;
    do {  // Without a key, dq is 0.
      f(Part{head, std::min(each.heads, heads - head), key, std::min(each.keys, sizes.keys - key)});
      key += each.keys;
    } while (key < sizes.keys);
  }
}

}  // namespace keel::cuda
