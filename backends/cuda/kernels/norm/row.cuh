// A row of one or more tensors is shared by neighbouring threads: a part of a warp, a warp or a
// block. Rows that fit in registers are read once, with 16-byte accesses if the width allows it;
// wider rows are read again in every pass.
#pragma once

#include <type_traits>
#include <utility>

#include "backends/cuda/kernels/data.cuh"
#include "backends/cuda/kernels/warp.cuh"
#include "src/ops/norm/sizes.h"

namespace keel::cuda {

// Elements `at` to `at + count` (at most 4) of x; the others are 0. `is_aligned` means that `at` is
// a multiple of 4 and count is 4.
__device__ inline Group4 load_some(Global<const float> x, std::int64_t at, int count,
                                   bool is_aligned) {
  if (is_aligned) {
    const float4 four = x.load4(at);
    return {four.x, four.y, four.z, four.w};
  }
  Group4 group4{};
  for (int i = 0; i < 4; ++i) {
    if (i < count) group4.at[i] = x[at + i];
  }
  return group4;
}

// An optional vector along the row, such as a gain, beginning at `first`. Every vector along a row
// has group4(column, count, is_aligned), which returns its elements from that column on.
struct AlongRow {
  Global<const float> values;
  float otherwise = 0;  // when absent
  std::int64_t first = 0;

  __device__ Group4 group4(std::int64_t column, int count, bool is_aligned) const {
    if (values) return load_some(values, first + column, count, is_aligned);
    return {otherwise, otherwise, otherwise, otherwise};
  }
};

// kThreads threads share a row, with kItems floats each; kItems is 0 if the row does not fit in
// registers. kTensors tensors of one shape are read together. A thread that has no row, while
// others of its warp have one, works on an empty row.
template <int kThreads, int kItems, int kTensors>
class Row {
 public:
  static constexpr int kRowsABlock = kThreads <= kWarp ? 128 / kThreads : 1;
  static constexpr int kBlock = kThreads * kRowsABlock;

  // Whether this thread's whole warp has nothing to do.
  __device__ static bool is_idle(std::int64_t rows) {
    return own(int(threadIdx.x) / kWarp * kWarp) >= rows;
  }
  __device__ static int rank() { return int(threadIdx.x) % kThreads; }
  // Whether `says` holds for any row of this warp; for steps that the warp's threads do together.
  __device__ static bool any(bool says) {
    return kThreads < kWarp ? __any_sync(kAllLanes, says) : says;
  }

  // Takes this thread's row; every kThreads neighbouring threads share one row.
  template <class Tensor>  // Data, or a Global of floats
  __device__ Row(const Tensor (&tensors)[kTensors], const RowSizes& sizes)
      : Row(tensors, own(int(threadIdx.x)), sizes.width, own(int(threadIdx.x)) < sizes.rows) {}
  template <class Tensor>
  __device__ Row(const Tensor (&tensors)[kTensors], std::int64_t index, std::int64_t width,
                 bool exists)
      : index_(exists ? index : 0),
        start_(index_ * width),
        width_(exists ? width : 0),
        is_aligned_(width % 4 == 0) {
    for (int t = 0; t < kTensors; ++t) tensors_[t] = tensors[t];
    if constexpr (kItems > 0) load();
  }

  // The index of the row; 0 for an empty row.
  __device__ std::int64_t index() const { return index_; }
  // Whether this thread is the one that writes the row's results.
  __device__ bool is_first() const { return rank() == 0 && width_ > 0; }
  // The first tensor's first element.
  __device__ float first() const { return tensors_[0][start_]; }

  // The sum over the row of f(column, value of each tensor, of each vector along),
  // in the type that f returns.
  template <class F, class... Along>
  __device__ auto sum(F f, const Along&... along) const {
    return over(Add(), f, along...);
  }
  // The same with another function to join two values.
  template <class Join, class F, class... Along>
  __device__ auto over(Join join, F f, const Along&... along) const {
    using T =
        decltype(f_result(f, std::make_integer_sequence<int, kTensors>(), (void(along), 0.f)...));
    T total = Join::kNeutral;
    each([&](int, std::int64_t column,
             auto... values) { total = join(total, f(column, values...)); },
         along...);
    return over_threads(total, join);
  }

  // Stores f(column, value of each tensor, of each vector along) in the row of y.
  template <class F, class... Along>
  __device__ void store(Result y, F f, const Along&... along) const {
    each_four([&](int four, std::int64_t column, int count) {
      float result[4];
      of_four(
          four, column, count,
          [&](int item, std::int64_t c, auto... values) { result[item % 4] = f(c, values...); },
          along...);
      if (is_aligned_) {
        y.store_four(start_ + column, result);
      } else {
        for (int i = 0; i < 4; ++i) {
          if (i < count) y.store(start_ + column + i, result[i]);
        }
      }
    });
  }

  // Calls f(item, column, value of each tensor, of each vector along) for
  // each element of this thread.
  template <class F, class... Along>
  __device__ void each(F f, const Along&... along) const {
    each_four([&](int four, std::int64_t column, int count) {
      of_four(four, column, count, f, along...);
    });
  }

 private:
  static constexpr int kFours = (kItems + 3) / 4;

  // The row of thread `thread` of the block.
  __device__ static std::int64_t own(int thread) {
    return std::int64_t{blockIdx.x} * kRowsABlock + thread / kThreads;
  }

  template <class F, int... kTensor, class... Along>
  __device__ static auto f_result(F f, std::integer_sequence<int, kTensor...>, Along... along) {
    return f(std::int64_t{}, float(kTensor)..., along...);
  }

  template <class Join, class T>
  __device__ static T over_threads(T value, Join join) {
    if constexpr (kThreads <= kWarp) {
      return over_lanes<kThreads>(value, join);
    } else {
      return over_block<kThreads>(value, join);
    }
  }

  // Calls f(number, first column, number of columns) for each four neighbours of this thread. The
  // fours of neighbouring threads are neighbours too.
  template <class F>
  __device__ void each_four(F f) const {
    if constexpr (kItems > 0) {
      const int left = int(width_) - 4 * rank();
      for (int four = 0; four < kFours; ++four) {
        const int before = 4 * four * kThreads;
        if (before < left) f(four, before + 4 * rank(), left - before < 4 ? left - before : 4);
      }
    } else {
      for (std::int64_t c = 4 * rank(); c < width_; c += 4 * kThreads) {
        f(0, c, width_ - c < 4 ? int(width_ - c) : 4);
      }
    }
  }

  __device__ void load() {
    for (int i = 0; i < 4 * kFours * kTensors; ++i) items_[i / (4 * kFours)][i % (4 * kFours)] = 0;
    each_four([&](int four, std::int64_t column, int count) {
      for (int t = 0; t < kTensors; ++t) {
        const Group4 group4 = tensors_[t].fetch_some(start_ + column, count, is_aligned_);
        for (int i = 0; i < 4; ++i) items_[t][4 * four + i] = group4.at[i];
      }
    });
    for (int t = 0; t < kTensors; ++t) {
      if (tensors_[t].is_narrow()) widen(tensors_[t], items_[t]);
    }
  }
  template <int kCount>
  __device__ void widen(const Data& x, float (&items)[kCount]) const {
    for (int i = 0; i < kCount; i += 4) {
      const Group4 group4 =
          x.widened_some({items[i], items[i + 1], items[i + 2], items[i + 3]}, is_aligned_);
      for (int k = 0; k < 4; ++k) items[i + k] = group4.at[k];
    }
  }

  template <class F, class... Along>
  __device__ void of_four(int four, std::int64_t column, int count, F f,
                          const Along&... along) const {
    Group4 groups4[kTensors];
    for (int t = 0; t < kTensors; ++t) {
      if constexpr (kItems > 0) {
        for (int i = 0; i < 4; ++i) groups4[t].at[i] = items_[t][4 * four + i];
      } else {
        groups4[t] = tensors_[t].fetch_some(start_ + column, count, is_aligned_);
      }
    }
    for (int t = 0; t < kTensors && kItems == 0; ++t) {
      groups4[t] = tensors_[t].widened_some(groups4[t], is_aligned_);
    }
    const auto call = [&](const auto&... of_along) {
      for (int i = 0; i < 4; ++i) {
        const int item = 4 * four + i;
        if (i >= count) continue;
        if constexpr (kTensors == 1) f(item, column + i, groups4[0].at[i], of_along.at[i]...);
        if constexpr (kTensors == 2) {
          f(item, column + i, groups4[0].at[i], groups4[1].at[i], of_along.at[i]...);
        }
      }
    };
    call(along.group4(column, count, is_aligned_)...);
  }

  Data tensors_[kTensors];
  std::int64_t index_, start_, width_;
  bool is_aligned_;
  float items_[kTensors][kItems > 0 ? 4 * kFours : 1];
};

// The width of the widest row whose two tensors fit in registers.
inline constexpr std::int64_t kWidestInRegisters = 8192;

// Calls run(integral constant) with the number of threads that hold a row of that width in
// registers, 16 floats each.
template <class Run>
void with_row_threads(std::int64_t width, Run run) {
  if (width <= 128) return run(std::integral_constant<int, 8>());
  if (width <= 256) return run(std::integral_constant<int, 16>());
  if (width <= 512) return run(std::integral_constant<int, 32>());
  if (width <= 1024) return run(std::integral_constant<int, 64>());
  if (width <= 2048) return run(std::integral_constant<int, 128>());
  if (width <= 4096) return run(std::integral_constant<int, 256>());
  run(std::integral_constant<int, 512>());
}

// Calls run(Row type) with the numbers of threads and items that suit rows of that width.
template <int kTensors, class Run>
void with_row(std::int64_t width, Run run) {
  if (width > 2 * kWidestInRegisters || (kTensors > 1 && width > kWidestInRegisters)) {
    return run(std::type_identity<Row<512, 0, kTensors>>());
  }
  if constexpr (kTensors == 1) {
    if (width > kWidestInRegisters) return run(std::type_identity<Row<1024, 16, 1>>());
  }
  with_row_threads(width, [&]<int kThreads>(std::integral_constant<int, kThreads>) {
    run(std::type_identity<Row<kThreads, 16, kTensors>>());
  });
}

// The same, for kernels whose rows may be groups of a few elements: two or four threads take such a
// row, so that not many of a warp are idle and sums need few steps. (One thread alone spills.)
template <int kTensors, class Run>
void with_short_row(std::int64_t width, Run run) {
  if (width <= 32) return run(std::type_identity<Row<2, 16, kTensors>>());
  if (width <= 64) return run(std::type_identity<Row<4, 16, kTensors>>());
  with_row<kTensors>(width, run);
}

template <class R>
Grid grid_of_rows(std::type_identity<R>, std::int64_t rows) {
  return {ceil_div(rows, R::kRowsABlock), R::kBlock};
}

}  // namespace keel::cuda
