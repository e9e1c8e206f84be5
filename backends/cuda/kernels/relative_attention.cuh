// Data of the kernels of relative attention, and the bands of rows that a tile meets: its own rows
// and its others meet one distance for each difference of their numbers.
#pragma once

#include "backends/cuda/kernels/attention.cuh"
#include "src/ops/relative_attention.h"

namespace keel::cuda {

// Tiles so small that their panels and bands fit shared memory, 48 KiB a block.
template <int kWidth>
struct RelativeTileOfWidth;
template <>
struct RelativeTileOfWidth<32> : AttentionTile<32, 128, 8, 2, 4> {};
template <>
struct RelativeTileOfWidth<64> : AttentionTile<64, 128, 16, 2, 1> {};
template <>
struct RelativeTileOfWidth<128> : AttentionTile<128, 64, 16, 2, 1> {};
template <>
struct RelativeTileOfWidth<256> : AttentionTile<256, 32, 8, 1, 1> {};

// Calls f with the tile for heads of `width` features.
template <class F>
void with_relative_tile(std::int64_t width, const F& f) {
  if (width <= 32) return f(std::type_identity<RelativeTileOfWidth<32>>());
  if (width <= 64) return f(std::type_identity<RelativeTileOfWidth<64>>());
  if (width <= 128) return f(std::type_identity<RelativeTileOfWidth<128>>());
  f(std::type_identity<RelativeTileOfWidth<256>>());
}

// Rows for all differences of an own row and another one.
template <class T>
using Band = typename T::template Panel<T::kOwn + T::kOther - 1>;

// The data common to all heads.
struct RelativeAttention {
  RelativeSizes sizes;
  AttentionSizes plain;  // the same, for the parts of attention
  std::int64_t window;
  float scale;
  Global<const std::int32_t> filled;
  Factor qk, qp, k, v, p;
  bool is_narrow = false;  // they are bf16

  RelativeAttention(const RelativeSizes& of, const RelativeAttentionAttrs& attrs)
      : sizes(of),
        plain{of.batch, of.heads, of.queries, of.keys, of.width},
        window(attrs.window),
        scale(float(relative_scale(attrs, of.width))) {}

  // The same, with the tensors of a node filled in.
  RelativeAttention bound(const Binding& b) const {
    using In = RelativeAttentionInput;
    RelativeAttention bound = *this;
    bound.filled = global<const std::int32_t>(b.inputs[In::kFilled]);
    bound.qk = Factor(b.inputs[In::kQk]);
    bound.qp = Factor(b.inputs[In::kQp]);
    bound.k = Factor(b.inputs[In::kK]);
    bound.v = Factor(b.inputs[In::kV]);
    bound.p = Factor(b.inputs[In::kP]);
    bound.is_narrow = cuda::is_narrow(b.inputs[In::kQk]);
    return bound;
  }
  // A block for each tile of `length` queries, keys or distances, in each of `heads` heads.
  template <class T>
  Grid grid(std::int64_t heads, std::int64_t length) const {
    return {heads * ceil_div(length, T::kOwn), T::kBlock};
  }
  // The first key that query i of a row sees.
  __device__ std::int64_t first_key(std::int64_t row, std::int64_t i) const {
    return first_key_seen(sizes, window, filled.get(row, std::int32_t(sizes.memory())), i);
  }
  __device__ bool sees(std::int64_t row, std::int64_t i, std::int64_t j) const {
    return i < sizes.queries && j < sizes.keys && j <= i + sizes.memory() && j >= first_key(row, i);
  }
  // Where the features of a head begin in the key of a distance; -1 if it is below 0.
  __device__ std::int64_t distance_at(std::int64_t head, std::int64_t distance) const {
    if (distance < 0) return -1;
    const std::int64_t r = distance < sizes.distances ? distance : sizes.distances - 1;
    return r * sizes.features() + head * sizes.width;
  }
  // The same for key j of a row of k or v; -1 if there is none.
  __device__ std::int64_t key_at(const AttentionPlace& place, std::int64_t j) const {
    return j < 0 || j >= sizes.keys ? -1 : place.feature(plain, sizes.keys, j);
  }
};

inline RelativeAttention relative_attention_of(const NodeContext& context) {
  using In = RelativeAttentionInput;
  const auto attrs = context.attrs<RelativeAttentionAttrs>();
  return {relative_sizes(context.input(In::kQk).shape, context.input(In::kK).shape,
                         context.input(In::kP).shape, attrs.heads),
          attrs};
}

// The block's threads fill a panel: row n has the features of x from start(n) on, or 0 where that
// is -1.
template <class T, class AnyPanel, class Start>
__device__ void load_rows(AnyPanel& panel, const Factor& x, std::int64_t width,
                          const Start& start) {
  for (int item = int(threadIdx.x); item < AnyPanel::kCount * T::kFours; item += T::kBlock) {
    const int index = item / T::kFours, four = item % T::kFours;
    const std::int64_t from = start(index);
    Group4 group4{};
    if (from >= 0) {
      group4 = x.some(from + 4 * four, features_of_four(width, four),
                      width % 4 == 0 && 4 * four < width);
    }
    panel.at(index, four) = make_float4(group4.at[0], group4.at[1], group4.at[2], group4.at[3]);
  }
}
// The same for consecutive positions of a row of a tensor (b, length, d).
struct Positions {
  Factor x;
  std::int64_t length, first;
};
template <class T, class AnyPanel>
__device__ void load_positions(AnyPanel& panel, const RelativeAttention& of,
                               const AttentionPlace& place, const Positions& from) {
  load_rows<T>(panel, from.x, of.sizes.width, [&](int n) {
    const std::int64_t i = from.first + n;
    return i < from.length ? place.feature(of.plain, from.length, i) : std::int64_t{-1};
  });
}

// scores += the dot products of row a(r) of one panel and row b(r, c) of another, for own row r and
// other row c of the tile.
template <class T, class PanelA, class PanelB, class RowOfA, class RowOfB>
__device__ void add_dots(typename T::Scores& scores, PanelA& x, PanelB& y, const RowOfA& a,
                         const RowOfB& b) {
  for (int four = 0; four < T::kFours; ++four) {
    for (int r = 0; r < T::kRowsAThread; ++r) {
      for (int c = 0; c < T::kColsAThread; ++c) {
        const float4 p = x.at(a(T::row(r), T::col(c)), four);
        const float4 q = y.at(b(T::row(r), T::col(c)), four);
        float sum = fmaf(p.x, q.x, scores[r][c]);
        sum = fmaf(p.y, q.y, sum);
        sum = fmaf(p.z, q.z, sum);
        scores[r][c] = fmaf(p.w, q.w, sum);
      }
    }
  }
}

// results += exchange times row b(r, j) of a band, for own row r and all others j. The threads of
// the same row have filled the exchange.
template <class T, class RowOfBand>
__device__ void add_band(typename T::Exchange& exchange, Band<T>& band,
                         typename T::Results& results, const RowOfBand& b) {
  for (int j = 0; j < T::kOther; ++j) {
    for (int r = 0; r < T::kRowsAThread; ++r) {
      const float factor = exchange.at(T::row(r), j);
      for (int f = 0; f < T::kFoursAThread; ++f) {
        const float4 x = band.at(b(T::row(r), j), T::col(0) + f * T::kLanesARow);
        float4& sum = results[r][f];
        sum.x = fmaf(factor, x.x, sum.x);
        sum.y = fmaf(factor, x.y, sum.y);
        sum.z = fmaf(factor, x.z, sum.z);
        sum.w = fmaf(factor, x.w, sum.w);
      }
    }
  }
}

// A tile's own and other rows as rows of its panels, and as rows of a band in which the difference
// of their numbers grows with the own row, or with the other.
struct OwnRow {
  __device__ int operator()(int own, int) const { return own; }
};
struct OtherRow {
  __device__ int operator()(int, int other) const { return other; }
};
template <class T>
struct OwnLessOther {
  __device__ int operator()(int own, int other) const { return own - other + T::kOther - 1; }
};
template <class T>
struct OtherLessOwn {
  __device__ int operator()(int own, int other) const { return other - own + T::kOwn - 1; }
};

// A block whose own rows are queries goes through the keys that they see, tile by tile: loads the
// keys, their values and the keys of their distances, computes the products of the scores, and
// calls take(first, scores). All threads must call it.
template <class T>
struct QueryPanels {
  typename T::OwnPanel qk, qp;
  typename T::OtherPanel k, v;
  Band<T> distances;
};
template <class T, class Take>
__device__ void each_relative_tile(const RelativeAttention& of, const AttentionPlace& place,
                                   QueryPanels<T>& panels, const Take& take) {
  const RelativeSizes& sizes = of.sizes;
  const std::int64_t seen = place.first + T::kOwn + sizes.memory();
  const std::int64_t end = seen < sizes.keys ? seen : sizes.keys;
  std::int64_t first = of.first_key(place.row, place.first) / T::kOther * T::kOther;
  for (; first < end; first += T::kOther) {
    const std::int64_t least = place.first + sizes.memory() - first - (T::kOther - 1);
    __syncthreads();
    load_positions<T>(panels.k, of, place, {of.k, sizes.keys, first});
    load_positions<T>(panels.v, of, place, {of.v, sizes.keys, first});
    load_rows<T>(panels.distances, of.p, sizes.width,
                 [&](int n) { return of.distance_at(place.head, least + n); });
    __syncthreads();
    typename T::Scores scores;
    multiply_features<T>(panels.qk, panels.k, scores);
    add_dots<T>(scores, panels.qp, panels.distances, OwnRow(), OwnLessOther<T>());
    take(first, scores);
  }
}

}  // namespace keel::cuda
