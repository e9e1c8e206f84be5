// Pooling, with one thread for each result. In the backward, an element adds the gradients of the
// windows that contain it, in window order.
#include "backends/cuda/kernels/kernels.h"
#include "backends/cuda/kernels/windows.cuh"
#include "src/ops/pool2d.h"

namespace keel::cuda {
namespace {

// Images (n, c, h, w) count as planes (n * c, h, w).
template <class Index>
struct PoolSizes {
  Index height, width, out_height, out_width, window, stride;

  // Where the window of element e of y begins in x.
  __device__ Index corner(Index e) const {
    const Index row = e / out_width, plane = row / out_height;
    return (plane * height + row % out_height * stride) * width + e % out_width * stride;
  }
};

// The first of equal ones stays; a NaN is not replaced.
template <class Index>
__global__ void max_pool(PoolSizes<Index> s, Global<const float> x, Global<float> y,
                         Global<std::uint8_t> index) {
  for (Index e = Index(grid_thread()); e < y.size(); e += Index(grid_threads())) {
    Index row = s.corner(e);
    float best = x[row];
    int best_place = 0, place = 0;
    for (Index u = 0; u < s.window; ++u, row += s.width) {
      for (Index v = 0; v < s.window; ++v, ++place) {
        const float candidate = x[row + v];
        if (candidate <= best || isnan(best)) continue;
        best = candidate;
        best_place = place;
      }
    }
    y[e] = best;
    index[e] = static_cast<std::uint8_t>(best_place);
  }
}

template <class Index>
__global__ void avg_pool(PoolSizes<Index> s, Global<const float> x, Global<float> y) {
  const auto places = float(s.window * s.window);
  for (Index e = Index(grid_thread()); e < y.size(); e += Index(grid_threads())) {
    Index row = s.corner(e);
    float sum = 0;
    for (Index u = 0; u < s.window; ++u, row += s.width) {
      for (Index v = 0; v < s.window; ++v) sum += x[row + v];
    }
    y[e] = sum / places;
  }
}

// The gradient that window e gives to the element at `place` of it.
struct MaxGradient {
  Global<const float> dy;
  Global<const std::uint8_t> index;
  __device__ float operator()(std::int64_t e, std::int64_t place) const {
    return index[e] == place ? dy[e] : 0;
  }
};

struct AvgGradient {
  Global<const float> dy;
  float places;
  __device__ float operator()(std::int64_t e, std::int64_t) const { return dy[e] / places; }
};

template <class Index, class Gradient>
__global__ void pool_backward(PoolSizes<Index> s, Gradient gradient, Global<float> dx) {
  for (Index e = Index(grid_thread()); e < dx.size(); e += Index(grid_threads())) {
    const Index all_rows = e / s.width, plane = all_rows / s.height;
    const Index col = e - all_rows * s.width, row = all_rows - plane * s.height;
    const Index windows = plane * s.out_height;  // rows of them
    const auto down = covering(row, s.window, s.stride, s.out_height);
    const auto across = covering(col, s.window, s.stride, s.out_width);
    float sum = 0;
    for (Index i = down.first; i < down.end; ++i) {
      for (Index j = across.first; j < across.end; ++j) {
        const Index place = (row - i * s.stride) * s.window + col - j * s.stride;
        sum += gradient((windows + i) * s.out_width + j, place);
      }
    }
    dx[e] = sum;
  }
}

// Calls f(sizes) with indices that suffice for x and y.
template <class Attrs, class F>
void with_sizes(const Shape& x, const Shape& y, const Attrs& attrs, F f) {
  const std::int64_t reach = std::max(std::int64_t(attrs.window), std::int64_t(attrs.stride));
  with_index(std::max({x.elements(), y.elements(), reach}), [&]<class Index>(Index) {
    f(PoolSizes<Index>{Index(x[2]), Index(x[3]), Index(y[2]), Index(y[3]), Index(attrs.window),
                       Index(attrs.stride)});
  });
}

Prepared refuse_channels_last() { return refuse("pools images stored as (n, c, h, w) only"); }

template <class Run>
Prepared prepare_forward(const NodeContext& c, Run run) {
  const auto& attrs = c.attrs<PoolAttrs>();
  if (attrs.channels_last) return refuse_channels_last();
  Prepared prepared;
  with_sizes(c.input(0).shape, c.output().shape, attrs, [&](auto sizes) {
    prepared = kernel_of([=](const Binding& b) { run(b, sizes); });
  });
  return prepared;
}

// make_gradient(binding, places of a window) gives the functor of what windows give.
template <class MakeGradient>
Prepared prepare_backward(const NodeContext& c, MakeGradient make_gradient) {
  const auto& attrs = c.attrs<PoolBackwardAttrs>();
  if (attrs.channels_last) return refuse_channels_last();
  Prepared prepared;
  const Shape& dy = c.input(PoolBackwardInput::kDy).shape;
  with_sizes(attrs.shape, dy, attrs, [&]<class Index>(const PoolSizes<Index>& sizes) {
    prepared = kernel_of([=](const Binding& b) {
      const auto dx = output(b.outputs[0]);
      const auto gradient = make_gradient(b, float(sizes.window * sizes.window));
      launch(pool_backward<Index, std::remove_const_t<decltype(gradient)>>,
             one_thread_each(dx.size()), sizes, gradient, dx);
    });
  });
  return prepared;
}

}  // namespace

Prepared prepare_max_pool2d(const NodeContext& context) {
  return prepare_forward(context, []<class Index>(const Binding& b, const PoolSizes<Index>& sizes) {
    const auto y = output(b.outputs[MaxPoolOutput::kY]);
    launch(max_pool<Index>, one_thread_each(y.size()), sizes, input(b.inputs[0]), y,
           global<std::uint8_t>(b.outputs[MaxPoolOutput::kIndex]));
  });
}

Prepared prepare_avg_pool2d(const NodeContext& context) {
  return prepare_forward(context, []<class Index>(const Binding& b, const PoolSizes<Index>& sizes) {
    const auto y = output(b.outputs[0]);
    launch(avg_pool<Index>, one_thread_each(y.size()), sizes, input(b.inputs[0]), y);
  });
}

Prepared prepare_max_pool2d_backward(const NodeContext& context) {
  return prepare_backward(context, [](const Binding& b, float) {
    return MaxGradient{input(b.inputs[PoolBackwardInput::kDy]),
                       global<const std::uint8_t>(b.inputs[PoolBackwardInput::kIndex])};
  });
}

Prepared prepare_avg_pool2d_backward(const NodeContext& context) {
  return prepare_backward(context, [](const Binding& b, float places) {
    return AvgGradient{input(b.inputs[PoolBackwardInput::kDy]), places};
  });
}

}  // namespace keel::cuda
