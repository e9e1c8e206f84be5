// The best candidates of a row, and the memory of the results of earlier steps.
#include <cmath>

#include "backends/cuda/device.h"
#include "backends/cuda/kernels/kernels.h"
#include "src/ops/search.h"

namespace keel::cuda {
namespace {

constexpr int kBlock = 128;

// An element of a row and where it stands; no element has the index -1.
struct Candidate {
  float value;
  std::int32_t index;

  __device__ bool exists() const { return index >= 0; }
  // Whether it is to be named before another one.
  __device__ bool precedes(const Candidate& other) const {
    if (!exists() || !other.exists()) return exists();
    const bool is_nan = value != value, other_is_nan = other.value != other.value;
    if (is_nan || other_is_nan) return is_nan && (!other_is_nan || index < other.index);
    return value > other.value || (value == other.value && index < other.index);
  }
};

// A block for each row looks for its first candidate, then for the first after that, and so on.
__global__ void __launch_bounds__(kBlock)
    rank_rows(std::int64_t width, std::int64_t k, Global<const float> x, Global<float> values,
              Global<std::int32_t> indices) {
  __shared__ Shared<float, kBlock> value;
  __shared__ Shared<std::int32_t, kBlock> index;
  const std::int64_t row = blockIdx.x;
  const int thread = int(threadIdx.x);
  Candidate last{0, -1};
  for (std::int64_t place = 0; place < k; ++place) {
    Candidate best{0, -1};
    for (std::int64_t i = thread; i < width; i += kBlock) {
      const Candidate here{x[row * width + i], std::int32_t(i)};
      if ((place == 0 || last.precedes(here)) && here.precedes(best)) best = here;
    }
    value[thread] = best.value;
    index[thread] = best.index;
    __syncthreads();
    for (int half = kBlock / 2; half > 0; half /= 2) {
      if (thread < half) {
        const Candidate own{value[thread], index[thread]};
        const Candidate other{value[thread + half], index[thread + half]};
        if (other.precedes(own)) {
          value[thread] = other.value;
          index[thread] = other.index;
        }
      }
      __syncthreads();
    }
    last = {value[0], index[0]};
    __syncthreads();
    if (thread == 0) {
      values[row * k + place] = last.value;
      indices[row * k + place] = last.index;
    }
  }
}

struct Memory {
  std::int64_t rows, length, width;
  std::int64_t elements() const { return rows * length * width; }
};

__global__ void put_rows(Memory sizes, Global<const float> memory, Global<const float> x,
                         Global<const std::int32_t> t, Global<float> y) {
  const std::int64_t at = t[0], stride = sizes.length * sizes.width;
  const bool is_outside = at < 0 || at >= sizes.length;
  for (std::int64_t e = grid_thread(); e < sizes.rows * stride; e += grid_threads()) {
    const std::int64_t row = e / stride, place = e % stride / sizes.width;
    float value = memory[e];
    if (place == at) value = x[row * sizes.width + e % sizes.width];
    y[e] = is_outside && e == 0 ? NAN : value;
  }
}

// y is the memory itself: only what is put has to be written.
__global__ void put_rows_in_place(Memory sizes, Global<const float> x, Global<const std::int32_t> t,
                                  Global<float> y) {
  const std::int64_t at = t[0];
  const bool is_outside = at < 0 || at >= sizes.length;
  for (std::int64_t e = grid_thread(); e < sizes.rows * sizes.width; e += grid_threads()) {
    if (is_outside) {
      if (e == 0) y[0] = NAN;
    } else {
      y[(e / sizes.width * sizes.length + at) * sizes.width + e % sizes.width] = x[e];
    }
  }
}

void scatter(const Binding& b) {
  using In = ScatterInput;
  const auto [rows, length, width] = memory_sizes(b.outputs[0].type.shape);
  const Memory sizes{rows, length, width};
  const auto x = input(b.inputs[In::kX]);
  const auto t = global<const std::int32_t>(b.inputs[In::kT]);
  const auto y = output(b.outputs[0]);
  if (sizes.elements() == 0) return;
  if (b.inputs[In::kMemory].data == b.outputs[0].data) {
    launch(put_rows_in_place, one_thread_each(rows * width), sizes, x, t, y);
  } else {
    launch(put_rows, one_thread_each(sizes.elements()), sizes, input(b.inputs[In::kMemory]), x, t,
           y);
  }
}

}  // namespace

Prepared prepare_top_k(const NodeContext& context) {
  const Shape& shape = context.input(0).shape;
  const std::int64_t k = context.attrs<TopKAttrs>().k;
  return kernel_of([rows = shape[0], width = shape[1], k](const Binding& b) {
    launch(rank_rows, {rows, kBlock}, width, k, input(b.inputs[0]),
           output(b.outputs[TopKOutput::kValues]),
           global<std::int32_t>(b.outputs[TopKOutput::kIndices]));
  });
}

Prepared prepare_scatter(const NodeContext&) { return kernel_of(scatter); }

}  // namespace keel::cuda
