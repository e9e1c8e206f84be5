// A row of one or more tensors, shared by the threads of a warp or a block. Narrow rows are read
// once, in accesses of 16 bytes where the width allows it, and stay in registers; wider ones are
// read again for every pass.
#pragma once

#include <type_traits>
#include <utility>

#include "backends/cuda/kernels/warp.cuh"

namespace keel::cuda {

// An optional vector along the row, such as a gain: the same for every row.
struct AlongRow {
  Global<const float> values;
  float otherwise = 0;  // when absent

  __device__ float operator()(std::int64_t column) const {
    return values ? values[column] : otherwise;
  }
};

// kThreads work on a row, kItems floats of it each; kItems 0: the row does not fit in registers.
// kTensors tensors of one shape are read together.
template <int kThreads, int kItems, int kTensors>
class Row {
 public:
  static constexpr int kRowsABlock = kThreads < 128 ? 128 / kThreads : 1;
  static constexpr int kBlock = kThreads * kRowsABlock;

  // The row that this thread works on; past the last row its group has nothing to do.
  __device__ static std::int64_t index() {
    return std::int64_t{blockIdx.x} * kRowsABlock + int(threadIdx.x) / kThreads;
  }
  __device__ static int rank() { return int(threadIdx.x) % kThreads; }
  __device__ static bool is_first() { return rank() == 0; }

  __device__ Row(const Global<const float> (&tensors)[kTensors], std::int64_t row,
                 std::int64_t width)
      : start_(row * width), width_(width) {
    for (int t = 0; t < kTensors; ++t) tensors_[t] = tensors[t];
    if constexpr (kItems > 0) load();
  }

  // The first tensor's first element.
  __device__ float first() const { return tensors_[0][start_]; }

  // The sum over the row of f(column, value of each tensor), in the type of f.
  template <class F>
  __device__ auto sum(F f) const {
    return over(Add(), f);
  }
  // The same for another way to join two values.
  template <class Join, class F>
  __device__ auto over(Join join, F f) const {
    using T = decltype(f_result(f, std::make_integer_sequence<int, kTensors>()));
    T total = Join::kNeutral;
    each([&](int, std::int64_t column, auto... values) {
      total = join(total, f(column, values...));
    });
    return over_group(total, join);
  }

  // y's row = f(column, value of each tensor).
  template <class F>
  __device__ void store(Global<float> y, F f) const {
    if constexpr (kItems > 0) {
      float result[kItems];
      each([&](int item, std::int64_t column, auto... values) {
        result[item] = f(column, values...);
      });
      write(y, result);
    } else {
      each([&](int, std::int64_t column, auto... values) {
        y[start_ + column] = f(column, values...);
      });
    }
  }

 private:
  static constexpr int kChunks = (kItems + 3) / 4;

  // The column of this thread's item: four neighbours together, then the next thread's four.
  __device__ static std::int64_t column(int item) {
    return (std::int64_t{item / 4} * kThreads + rank()) * 4 + item % 4;
  }

  template <class F, int... kTensor>
  __device__ static auto f_result(F f, std::integer_sequence<int, kTensor...>) {
    return f(std::int64_t{}, float(kTensor)...);
  }

  template <class Join, class T>
  __device__ static T over_group(T value, Join join) {
    if constexpr (kThreads == kWarp) {
      return over_warp(value, join);
    } else {
      return over_block<kThreads>(value, join);
    }
  }

  __device__ bool is_vectorised() const { return width_ % 4 == 0; }

  __device__ void load() {
    for (int t = 0; t < kTensors; ++t) {
      for (int chunk = 0; chunk < kChunks; ++chunk) {
        const std::int64_t first = column(4 * chunk);
        float* const to = items_[t] + 4 * chunk;
        if (is_vectorised() && first < width_) {
          const float4 four = tensors_[t].load4(start_ + first);
          to[0] = four.x, to[1] = four.y, to[2] = four.z, to[3] = four.w;
        } else {
          for (int i = 0; i < 4; ++i) {
            to[i] = first + i < width_ ? tensors_[t][start_ + first + i] : 0;
          }
        }
      }
    }
  }

  __device__ void write(Global<float> y, const float* from) const {
    for (int chunk = 0; chunk < kChunks; ++chunk) {
      const std::int64_t first = column(4 * chunk);
      const float* const four = from + 4 * chunk;
      if (is_vectorised() && first < width_) {
        y.store4(start_ + first, make_float4(four[0], four[1], four[2], four[3]));
      } else {
        for (int i = 0; i < 4; ++i) {
          if (first + i < width_) y[start_ + first + i] = four[i];
        }
      }
    }
  }

  // f(item, column, value of each tensor) for every element of the row that this thread has.
  template <class F>
  __device__ void each(F f) const {
    if constexpr (kItems > 0) {
      for (int item = 0; item < kItems; ++item) {
        if (column(item) < width_) call(f, item, column(item));
      }
    } else {
      for (std::int64_t c = rank(); c < width_; c += kThreads) call_from_memory(f, c);
    }
  }

  template <class F>
  __device__ void call(F& f, int item, std::int64_t c) const {
    if constexpr (kTensors == 1) f(item, c, items_[0][item]);
    if constexpr (kTensors == 2) f(item, c, items_[0][item], items_[1][item]);
  }
  template <class F>
  __device__ void call_from_memory(F& f, std::int64_t c) const {
    if constexpr (kTensors == 1) f(0, c, tensors_[0][start_ + c]);
    if constexpr (kTensors == 2) f(0, c, tensors_[0][start_ + c], tensors_[1][start_ + c]);
  }

  Global<const float> tensors_[kTensors];
  std::int64_t start_, width_;
  float items_[kTensors][kItems > 0 ? 4 * kChunks : 1];
};

// Calls run(Row type) with the threads and items that suit rows of that width.
template <int kTensors, class Run>
void with_row(std::int64_t width, Run run) {
  if (width <= 128) return run(std::type_identity<Row<32, 4, kTensors>>());
  if (width <= 256) return run(std::type_identity<Row<32, 8, kTensors>>());
  if (width <= 1024) return run(std::type_identity<Row<128, 8, kTensors>>());
  if (width <= 4096) return run(std::type_identity<Row<512, 8, kTensors>>());
  if (width <= 8192) return run(std::type_identity<Row<1024, 8, kTensors>>());
  run(std::type_identity<Row<256, 0, kTensors>>());
}

template <class R>
Grid grid_of_rows(std::type_identity<R>, std::int64_t rows) {
  return {ceil_div(rows, R::kRowsABlock), R::kBlock};
}

}  // namespace keel::cuda
