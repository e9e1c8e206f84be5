// A tile of the probabilities of one head, processed by a block of threads. It has the block's own
// rows (queries or keys) against others (keys or queries), which the block visits tile by tile.
// kLanes neighbouring threads share a row and hold its scores and results in registers.
#pragma once

#include <cmath>
#include <type_traits>

#include "backends/cuda/kernels/factor.cuh"
#include "backends/cuda/kernels/functions.cuh"
#include "backends/cuda/kernels/norm/row.cuh"
#include "src/ops/attention.h"

namespace keel::cuda {

// A block's tile for heads of up to kWidth features. A thread has kRows rows and
// kCols scores of each row.
template <int kWidth, int kThreads, int kLanes, int kRows, int kCols>
struct AttentionTile {
  static constexpr int kBlock = kThreads, kLanesARow = kLanes;
  static constexpr int kRowsAThread = kRows, kColsAThread = kCols;
  static constexpr int kOwn = kThreads / kLanes * kRows, kOther = kLanes * kCols;
  static constexpr int kFours = kWidth / 4, kFoursAThread = kFours / kLanes;
  static_assert(kOwn <= kWarp && kOther <= kWarp && kOther / 4 <= kLanes);

  using Scores = float[kRows][kCols];
  using Results = float4[kRows][kFoursAThread];

  // A thread's rows are neighbours; its columns are kLanes apart.
  __device__ static int lane() { return int(threadIdx.x) % kLanes; }
  __device__ static int row(int r) { return int(threadIdx.x) / kLanes * kRows + r; }
  __device__ static int col(int c) { return lane() + kLanes * c; }

  // Features of kCount queries or keys. A padding float4 after each row avoids bank conflicts.
  template <int kSize>
  struct Panel {
    static constexpr int kCount = kSize;
    Shared<float4, kCount*(kFours + 1)> fours;
    __device__ float4& at(int index, int four) { return fours[index * (kFours + 1) + four]; }
  };
  using OwnPanel = Panel<kOwn>;
  using OtherPanel = Panel<kOther>;

  // Probabilities, or their gradients, that the threads of a row exchange with each other.
  struct Exchange {
    Shared<float, kOwn*(kOther + 1)> values;
    __device__ float& at(int own, int other) { return values[own * (kOther + 1) + other]; }
  };
};

// Registers hold 4 kFoursAThread results of a row; shared memory is limited to 48 KiB a block.
// Tiles of 4 by 4 scores a thread load less for each product, but leave a block of 32 queries two
// warps, too few to fill a multiprocessor for sentences of one or two tiles.
template <int kWidth>
struct TileOfWidth;
template <>
struct TileOfWidth<32> : AttentionTile<32, 128, 8, 2, 4> {};
template <>
struct TileOfWidth<64> : AttentionTile<64, 128, 16, 4, 2> {};
template <>
struct TileOfWidth<128> : AttentionTile<128, 128, 16, 2, 1> {};
template <>
struct TileOfWidth<256> : AttentionTile<256, 64, 8, 1, 1> {};
static_assert(kWidestHead == 256);

// Calls f with the tile for heads of `width` features.
template <class F>
void with_tile(std::int64_t width, const F& f) {
  if (width <= 32) return f(std::type_identity<TileOfWidth<32>>());
  if (width <= 64) return f(std::type_identity<TileOfWidth<64>>());
  if (width <= 128) return f(std::type_identity<TileOfWidth<128>>());
  f(std::type_identity<TileOfWidth<256>>());
}

// The number of features of a head among the four from `four` on; 0 after its end.
__device__ inline int features_of_four(std::int64_t width, int four) {
  const std::int64_t left = width - 4 * four;
  return left < 0 ? 0 : left < 4 ? int(left) : 4;
}

// The block's threads fill a panel with the features of the queries or keys from `first` on whose
// bit is set, and with 0 for the others.
template <class T, class Panel>
__device__ void load_panel(Panel& panel, std::uint32_t bits, const Factor& x, std::int64_t start,
                           const AttentionSizes& sizes) {
  for (int item = int(threadIdx.x); item < Panel::kCount * T::kFours; item += T::kBlock) {
    const int index = item / T::kFours, four = item % T::kFours;
    Group4 group4{};
    if (bits >> index & 1) {
      group4 =
          x.some(start + index * sizes.features() + 4 * four, features_of_four(sizes.width, four),
                 sizes.width % 4 == 0 && 4 * four < sizes.width);
    }
    panel.at(index, four) = make_float4(group4.at[0], group4.at[1], group4.at[2], group4.at[3]);
  }
}

// Dot products of the features of own rows with those of other rows.
template <class T>
__device__ void multiply_features(typename T::OwnPanel& own, typename T::OtherPanel& other,
                                  typename T::Scores& scores) {
  for (auto& row : scores) {
    for (float& score : row) score = 0;
  }
  for (int four = 0; four < T::kFours; ++four) {
    float4 a[T::kRowsAThread], b[T::kColsAThread];
    for (int r = 0; r < T::kRowsAThread; ++r) a[r] = own.at(T::row(r), four);
    for (int c = 0; c < T::kColsAThread; ++c) b[c] = other.at(T::col(c), four);
    for (int r = 0; r < T::kRowsAThread; ++r) {
      for (int c = 0; c < T::kColsAThread; ++c) {
        float sum = fmaf(a[r].x, b[c].x, scores[r][c]);
        sum = fmaf(a[r].y, b[c].y, sum);
        sum = fmaf(a[r].z, b[c].z, sum);
        scores[r][c] = fmaf(a[r].w, b[c].w, sum);
      }
    }
  }
}

// results += exchange times the others' features. The threads of the same row
// have filled the exchange.
template <class T>
__device__ void add_products(typename T::Exchange& exchange, typename T::OtherPanel& other,
                             typename T::Results& results) {
  for (int j = 0; j < T::kOther; ++j) {
    float factors[T::kRowsAThread];
    for (int r = 0; r < T::kRowsAThread; ++r) factors[r] = exchange.at(T::row(r), j);
    for (int f = 0; f < T::kFoursAThread; ++f) {
      const float4 x = other.at(j, T::col(0) + f * T::kLanesARow);
      for (int r = 0; r < T::kRowsAThread; ++r) {
        float4& sum = results[r][f];
        sum.x = fmaf(factors[r], x.x, sum.x);
        sum.y = fmaf(factors[r], x.y, sum.y);
        sum.z = fmaf(factors[r], x.z, sum.z);
        sum.w = fmaf(factors[r], x.w, sum.w);
      }
    }
  }
}

template <class T>
__device__ void clear(typename T::Results& results) {
  for (auto& row : results) {
    for (float4& four : row) four = make_float4(0, 0, 0, 0);
  }
}

// The block's own rows in a tensor: the offset of the first row's first feature, and their number.
struct OwnRows {
  std::int64_t start, count;
};

// Reads results from y's own rows.
template <class T>
__device__ void load_results(Global<float> y, const OwnRows& rows, const AttentionSizes& sizes,
                             typename T::Results& results) {
  for (int r = 0; r < T::kRowsAThread; ++r) {
    if (T::row(r) >= rows.count) continue;
    for (int f = 0; f < T::kFoursAThread; ++f) {
      const int four = T::col(0) + f * T::kLanesARow;
      const std::int64_t at = rows.start + T::row(r) * sizes.features() + 4 * four;
      const Group4 x = load_some(y, at, features_of_four(sizes.width, four), false);
      results[r][f] = make_float4(x.at[0], x.at[1], x.at[2], x.at[3]);
    }
  }
}

// Writes y's own rows: factor(r) * results.
template <class T, class Factor>
__device__ void store_results(Global<float> y, const OwnRows& rows, const AttentionSizes& sizes,
                              typename T::Results& results, Factor factor) {
  for (int r = 0; r < T::kRowsAThread; ++r) {
    if (T::row(r) >= rows.count) continue;
    for (int f = 0; f < T::kFoursAThread; ++f) {
      const int four = T::col(0) + f * T::kLanesARow;
      const int count = features_of_four(sizes.width, four);
      const std::int64_t at = rows.start + T::row(r) * sizes.features() + 4 * four;
      const float4 x = results[r][f];
      const float scaled[] = {factor(r) * x.x, factor(r) * x.y, factor(r) * x.z, factor(r) * x.w};
      if (sizes.width % 4 == 0 && count == 4) {
        y.store4(at, make_float4(scaled[0], scaled[1], scaled[2], scaled[3]));
      } else {
        for (int i = 0; i < 4; ++i) {
          if (i < count) y[at + i] = scaled[i];
        }
      }
    }
  }
}

// The value that is subtracted from scores before their exponential is taken: their maximum, or
// beside factors of bf16 the next multiple of log 2, so that earlier results are scaled by powers
// of 2 and how a probability is rounded does not depend on the tiles. The multiple is subtracted in
// two parts, of which the larger has few bits.
struct ScoreShift {
  static constexpr float kLog2E = 1.44269504f, kMost = 0.693359375f, kRest = -2.12194440e-4f;
  bool is_narrow;

  __device__ float of_max(float max) const { return is_narrow ? ceilf(max * kLog2E) : max; }
  __device__ float subtract(float score, float shift) const {
    return is_narrow ? fmaf(-shift, kRest, fmaf(-shift, kMost, score)) : score - shift;
  }
  // Results with the shift `before` are multiplied by it.
  __device__ float factor(float before, float shift) const {
    if (!is_narrow) return exponential(before - shift);
    const float power = before - shift;
    return power < -126 ? 0 : ldexpf(1, int(power));
  }
  __device__ float add(float shift, float log_sum) const {
    return is_narrow ? fmaf(shift, kMost, fmaf(shift, kRest, log_sum)) : shift + log_sum;
  }
};

// Makes probabilities, but for the division by their sum, of a tile's scores and passes those that
// dropout keeps on. The shift and the sum so far are of all threads of the row.
template <class T>
struct Softmax {
  ScoreShift of;
  float shift[T::kRowsAThread], sum[T::kRowsAThread];

  __device__ explicit Softmax(bool is_narrow) : of{is_narrow} {
    for (float& s : shift) s = -INFINITY;
    for (float& s : sum) s = 0;
  }
  // Row r, which is query i, and the keys from `first` on that are present. Returns the factor of
  // what the row holds so far. The shift over no key, -infinity, is not subtracted.
  __device__ float take(int r, float (&scores)[T::kColsAThread], std::uint32_t kept,
                        typename T::Exchange& exchange) {
    float largest = -INFINITY;
    for (float score : scores) largest = Largest()(largest, score);
    largest = over_lanes<T::kLanesARow>(largest, Largest());
    const float last = Largest()(shift[r], of.of_max(largest));
    const float own_shift = last == -INFINITY ? 0 : last;
    const float factor = of.factor(shift[r], own_shift);
    float own = 0;
    for (int c = 0; c < T::kColsAThread; ++c) {
      const float e = exponential(of.subtract(scores[c], own_shift));
      own += e;
      const float p = of.is_narrow ? in_bf16(e) : e;
      exchange.at(T::row(r), T::col(c)) = (kept >> T::col(c) & 1) != 0 ? p : 0;
    }
    sum[r] = fmaf(sum[r], factor, over_lanes<T::kLanesARow>(own, Add()));
    shift[r] = last;
    return factor;
  }
  __device__ float lse(int r) const { return of.add(shift[r], logf(sum[r])); }
};

// The sum of dy y over the features of own query r, 0 if there is none, for all threads of its row.
template <class T>
__device__ float sum_products(typename T::OwnPanel& dy, Global<const float> y, std::int64_t start,
                              const AttentionSizes& sizes, int r) {
  float sum = 0;
  for (int f = 0; f < T::kFoursAThread; ++f) {
    const int four = T::col(0) + f * T::kLanesARow;
    const std::int64_t at = start + T::row(r) * sizes.features() + 4 * four;
    const int count = at < y.size() ? features_of_four(sizes.width, four) : 0;
    const Group4 of_y = load_some(y, at, count, false);
    const float4 of_dy = dy.at(T::row(r), four);
    sum = fmaf(of_dy.x, of_y.at[0], sum);
    sum = fmaf(of_dy.y, of_y.at[1], sum);
    sum = fmaf(of_dy.z, of_y.at[2], sum);
    sum = fmaf(of_dy.w, of_y.at[3], sum);
  }
  return over_lanes<T::kLanesARow>(sum, Add());
}

}  // namespace keel::cuda
