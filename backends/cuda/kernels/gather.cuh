// Copies elements between a whole tensor and a window of another tensor, or a stretched or
// transposed view of it: 16 bytes at once if all contiguous runs of the window allow it.
#pragma once

#include "backends/cuda/kernels/strided.cuh"

namespace keel::cuda {

// Element e of the whole tensor, in order, lies in the other tensor at
// start + place(extent, steps, e).
struct Window {
  Extent extent;
  Steps steps;
  std::int64_t start = 0;
};

// The same window with as few axes as possible.
inline Window merged(const Window& w) {
  Window result;
  result.start = w.start;
  for (int axis = 0; axis < w.extent.rank; ++axis) {
    if (w.extent.sizes[axis] == 1) continue;
    append_axis(result.extent, result.steps, w.extent.sizes[axis], w.steps.along[axis]);
  }
  return result;
}

// Whether the window consists of contiguous groups of n elements, each at a multiple of n.
inline bool is_made_of(const Window& w, std::int64_t n) {
  const int last = w.extent.rank - 1;
  if (last < 0 || w.steps.along[last] != 1 || w.extent.sizes[last] % n != 0) return false;
  bool is_aligned = w.start % n == 0;
  for (int axis = 0; axis < last; ++axis) is_aligned = is_aligned && w.steps.along[axis] % n == 0;
  return is_aligned;
}

// The same window, counted in groups of n elements.
inline Window in_groups(Window w, std::int64_t n) {
  const int last = w.extent.rank - 1;
  w.start /= n;
  w.extent.sizes[last] /= n;
  for (int axis = 0; axis < last; ++axis) w.steps.along[axis] /= n;
  return w;
}

// Calls f with a value of the unsigned type that is as wide as an element of four bytes, two or
// one, for plain copies.
template <class F>
void with_cell(DType dtype, F f) {
  switch (size_of(dtype)) {
    case 1:
      return f(std::uint8_t{});
    case 2:
      return f(std::uint16_t{});
    default:
      return f(std::uint32_t{});
  }
}

// whole[e] = element of the window, or the other way round.
template <bool kIntoWindow, class T>
__global__ void move_elements(Window w, Global<const T> from, Global<T> to) {
  const std::int64_t elements = kIntoWindow ? from.size() : to.size();
  for (std::int64_t e = grid_thread(); e < elements; e += grid_threads()) {
    const std::int64_t at = w.start + place(w.extent, w.steps, e);
    to[kIntoWindow ? at : e] = from[kIntoWindow ? e : at];
  }
}

template <bool kIntoWindow, class T>
void move_as(const Window& w, const TensorRef& from, const TensorRef& to) {
  const auto source = global<const T>(from);
  const auto target = global<T>(to);
  const Grid grid = one_thread_each(kIntoWindow ? source.size() : target.size());
  launch(move_elements<kIntoWindow, T>, grid, w, source, target);
}

template <bool kIntoWindow>
void move(const Window& window, const TensorRef& from, const TensorRef& to) {
  const Window w = merged(window);
  with_cell(to.type.dtype, [&](auto cell) {
    constexpr std::int64_t kGroup = sizeof(float4) / sizeof cell;
    if (is_made_of(w, kGroup)) {
      move_as<kIntoWindow, float4>(in_groups(w, kGroup), from, to);
    } else {
      move_as<kIntoWindow, decltype(cell)>(w, from, to);
    }
  });
}

// y = the window of x.
inline void gather(const TensorRef& y, const TensorRef& x, const Window& window) {
  move<false>(window, x, y);
}
// The window of y = x.
inline void scatter(const TensorRef& y, const TensorRef& x, const Window& window) {
  move<true>(window, x, y);
}

}  // namespace keel::cuda
