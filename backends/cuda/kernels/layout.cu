// Ops that only move elements. reshape is a view and has no kernel.
#include "backends/cuda/kernels/gather.cuh"
#include "backends/cuda/kernels/kernels.h"
#include "src/core/bf16.h"
#include "src/core/with_type.h"
#include "src/ops/layout.h"

namespace keel::cuda {
namespace {

constexpr int kTile = 32, kTileRows = 8;  // a tile is moved by kTile * kTileRows threads
constexpr std::int64_t kLeastTiled = 8;   // shorter sides would leave most of a tile empty

// y (..., columns) whose neighbours lie `x_step` apart in x, while neighbours along its axis of
// `rows` lie side by side there and `y_step` apart in y. The other axes are the batch.
struct TiledTranspose {
  std::int64_t rows = 0, columns = 0, x_step = 0, y_step = 0, batch = 1;
  Extent extent;
  Steps x_steps, y_steps;  // of the batch's axes

  __host__ __device__ std::int64_t tiles_down() const { return (rows + kTile - 1) / kTile; }
  __host__ __device__ std::int64_t tiles_across() const { return (columns + kTile - 1) / kTile; }
};

// Through shared memory, so that both tensors are accessed 32 neighbours at a time. The tile's rows
// are one element longer than it, which puts a column's elements into different banks.
template <class T>
__global__ void __launch_bounds__(kTile* kTileRows)
    transpose_tiles(TiledTranspose tiled, Global<const T> x, Global<T> y) {
  __shared__ Shared<T, kTile*(kTile + 1)> tile;
  const std::int64_t down = blockIdx.x / tiled.tiles_across() % tiled.tiles_down();
  const std::int64_t first_row = down * kTile;
  const std::int64_t first_column = blockIdx.x % tiled.tiles_across() * kTile;
  const std::int64_t member = blockIdx.x / tiled.tiles_across() / tiled.tiles_down();
  const std::int64_t x_start = place(tiled.extent, tiled.x_steps, member);
  const std::int64_t y_start = place(tiled.extent, tiled.y_steps, member);
  const int lane = int(threadIdx.x) % kTile;
  for (int i = int(threadIdx.x) / kTile; i < kTile; i += kTileRows) {
    const std::int64_t row = first_row + lane, column = first_column + i;
    if (row < tiled.rows && column < tiled.columns) {
      tile[i * (kTile + 1) + lane] = x[x_start + column * tiled.x_step + row];
    }
  }
  __syncthreads();
  for (int i = int(threadIdx.x) / kTile; i < kTile; i += kTileRows) {
    const std::int64_t row = first_row + i, column = first_column + lane;
    if (row < tiled.rows && column < tiled.columns) {
      y[y_start + row * tiled.y_step + column] = tile[lane * (kTile + 1) + i];
    }
  }
}

// The transposition that a window of x is; no rows when it is not one, or not worth tiles.
TiledTranspose tiled_transpose(const Window& w) {
  TiledTranspose tiled;
  const int last = w.extent.rank - 1;
  std::int64_t y_step = 1;
  for (int axis = last; axis >= 0; y_step *= w.extent.sizes[axis--]) {
    const std::int64_t size = w.extent.sizes[axis], x_step = w.steps.along[axis];
    if (axis == last) {
      tiled.columns = size;
      tiled.x_step = x_step;
    } else if (x_step == 1) {
      tiled.rows = size;
      tiled.y_step = y_step;
    } else {
      tiled.batch *= size;
      tiled.extent.sizes[tiled.extent.rank] = size;
      tiled.x_steps.along[tiled.extent.rank] = x_step;
      tiled.y_steps.along[tiled.extent.rank++] = y_step;
    }
  }
  if (std::min(tiled.rows, tiled.columns) < kLeastTiled) tiled.rows = 0;
  return tiled;
}

template <class T>
void transpose_as(const TiledTranspose& tiled, const TensorRef& x, const TensorRef& y) {
  const Grid grid{tiled.batch * tiled.tiles_down() * tiled.tiles_across(), kTile * kTileRows};
  launch(transpose_tiles<T>, grid, tiled, global<const T>(x), global<T>(y));
}

// y axis i is x axis axes[i].
void transpose(const TensorRef& y, const TensorRef& x, const Window& window,
               const TiledTranspose& tiled) {
  if (tiled.rows == 0) return gather(y, x, window);
  with_cell(y.type.dtype, [&](auto cell) { transpose_as<decltype(cell)>(tiled, x, y); });
}

// Part after part along the axis: each is written into its own window of y.
void concat(const Binding& b, int axis) {
  const Steps own = steps(b.outputs[0].type.shape);
  std::int64_t start = 0;
  for (const TensorRef& part : b.inputs) {
    scatter(b.outputs[0], part, {extent(part.type.shape), own, start * own.along[axis]});
    start += part.type.shape[axis];
  }
}

// y with x inside it: along every axis x begins at `before` and has `sizes` elements.
struct Frame {
  Extent extent;
  std::int64_t before[Shape::kMaxRank] = {}, sizes[Shape::kMaxRank] = {};
};

// An axis that nothing is added to is one with the axis before it.
Frame make_frame(const Shape& x, const Shape& y, const PadAttrs& attrs) {
  Frame frame;
  for (int axis = 0; axis < y.rank(); ++axis) {
    const bool is_whole = x[axis] == y[axis];
    if (is_whole && frame.extent.rank > 0) {
      const int last = frame.extent.rank - 1;
      frame.extent.sizes[last] *= y[axis];
      frame.before[last] *= y[axis];
      frame.sizes[last] *= x[axis];
    } else {
      const int next = frame.extent.rank++;
      frame.extent.sizes[next] = y[axis];
      frame.before[next] = attrs.before[std::size_t(axis)];
      frame.sizes[next] = x[axis];
    }
  }
  return frame;
}

template <class T>
__global__ void pad_elements(Frame frame, T value, Global<const T> x, Global<T> y) {
  for (std::int64_t e = grid_thread(); e < y.size(); e += grid_threads()) {
    std::int64_t at = 0, step = 1, rest = e;
    bool is_inside = true;
    for (int axis = frame.extent.rank - 1; axis >= 0; --axis) {
      const std::int64_t i = rest % frame.extent.sizes[axis] - frame.before[axis];
      is_inside = is_inside && i >= 0 && i < frame.sizes[axis];
      at += i * step;
      step *= frame.sizes[axis];
      rest /= frame.extent.sizes[axis];
    }
    y[e] = is_inside ? x[at] : value;
  }
}

template <class T>
void pad(const Binding& b, const Frame& frame, T value) {
  const TensorRef& y = b.outputs[0];
  launch(pad_elements<T>, one_thread_each(y.elements()), frame, value, global<const T>(b.inputs[0]),
         global<T>(y));
}

}  // namespace

Prepared prepare_transpose(const NodeContext& context) {
  const Steps own = steps(context.input(0).shape);
  const auto& axes = context.attrs<TransposeAttrs>().axes;
  Window window{extent(context.output().shape), {}};
  for (std::size_t i = 0; i < axes.size(); ++i) window.steps.along[i] = own.along[axes[i]];
  window = merged(window);
  return kernel_of([window, tiled = tiled_transpose(window)](const Binding& b) {
    transpose(b.outputs[0], b.inputs[0], window, tiled);
  });
}

Prepared prepare_slice(const NodeContext& context) {
  Window window{extent(context.output().shape), steps(context.input(0).shape)};
  const auto& starts = context.attrs<SliceAttrs>().starts;
  for (std::size_t i = 0; i < starts.size(); ++i) window.start += starts[i] * window.steps.along[i];
  return kernel_of([window](const Binding& b) { gather(b.outputs[0], b.inputs[0], window); });
}

// For parts that a view could not leave where they lie: short ones.
Prepared prepare_split(const NodeContext& context) {
  Window window{extent(context.output().shape), steps(context.output().shape)};
  const std::int64_t elements = context.output().shape.elements();
  return kernel_of([window, elements](const Binding& b) {
    Window part = window;
    for (const TensorRef& y : b.outputs) {
      gather(y, b.inputs[0], part);
      part.start += elements;
    }
  });
}

Prepared prepare_concat(const NodeContext& context) {
  const auto axis = int(context.attrs<ConcatAttrs>().axis);
  return kernel_of([axis](const Binding& b) { concat(b, axis); });
}

Prepared prepare_pad(const NodeContext& context) {
  const auto& attrs = context.attrs<PadAttrs>();
  const Frame frame = make_frame(context.input(0).shape, context.output().shape, attrs);
  Prepared prepared;
  with_type<float, BF16, std::int32_t, std::uint8_t>(context.output().dtype, [&](auto element) {
    const auto value = static_cast<decltype(element)>(attrs.value);
    prepared = kernel_of([frame, value](const Binding& b) { pad(b, frame, value); });
  });
  return prepared;
}

}  // namespace keel::cuda
