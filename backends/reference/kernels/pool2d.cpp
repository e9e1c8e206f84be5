// 2-D pooling, window by window.
#include "src/ops/pool2d.h"

#include <cmath>

#include "backends/reference/kernels/images.h"
#include "backends/reference/kernels/kernels.h"

namespace keel::reference {
namespace {

struct PoolSizes {
  Images x, y;
  std::int64_t window, stride;

  // Offset in x of place `p` of a window, counted row by row, whose first element is at `corner`.
  std::int64_t place(std::int64_t corner, std::int64_t p) const {
    return corner + p / window * x.row_stride + p % window * x.col_stride;
  }
  std::int64_t places() const { return window * window; }
};

template <class Attrs>
PoolSizes pool_sizes(const Shape& x, const Shape& y, const Attrs& attrs) {
  return {images_of(x, attrs.channels_last), images_of(y, attrs.channels_last), attrs.window,
          attrs.stride};
}

// Calls visit(corner, y) for every window: the offsets of its first element in x and of its result.
template <class Visit>
void visit_windows(const PoolSizes& s, Visit visit) {
  for (std::int64_t n = 0; n < s.y.images; ++n) {
    for (std::int64_t c = 0; c < s.y.channels; ++c) {
      for (std::int64_t i = 0; i < s.y.height; ++i) {
        for (std::int64_t j = 0; j < s.y.width; ++j) {
          visit(s.x.offset(n, c, i * s.stride, j * s.stride), s.y.offset(n, c, i, j));
        }
      }
    }
  }
}

// y = largest of the window, index = its place, the first on ties. A NaN beats every number.
void max_pool(const Binding& b, const PoolSizes& s) {
  const double* x = b.inputs[0].as<double>();
  double* y = b.outputs[MaxPoolOutput::kY].as<double>();
  std::uint8_t* index = b.outputs[MaxPoolOutput::kIndex].as<std::uint8_t>();
  visit_windows(s, [&](std::int64_t corner, std::int64_t out) {
    std::int64_t best = 0;
    for (std::int64_t p = 1; p < s.places() && !std::isnan(x[s.place(corner, best)]); ++p) {
      const double candidate = x[s.place(corner, p)];
      if (candidate > x[s.place(corner, best)] || std::isnan(candidate)) best = p;
    }
    y[out] = x[s.place(corner, best)];
    index[out] = static_cast<std::uint8_t>(best);
  });
}

void max_pool_backward(const Binding& b, const PoolSizes& s) {
  const double* dy = b.inputs[PoolBackwardInput::kDy].as<double>();
  const std::uint8_t* index = b.inputs[PoolBackwardInput::kIndex].as<std::uint8_t>();
  double* dx = b.outputs[0].as<double>();
  vector(b.outputs[0]).setZero();
  visit_windows(s, [&](std::int64_t corner, std::int64_t out) {
    dx[s.place(corner, index[out])] += dy[out];
  });
}

void avg_pool(const Binding& b, const PoolSizes& s) {
  const double* x = b.inputs[0].as<double>();
  double* y = b.outputs[0].as<double>();
  visit_windows(s, [&](std::int64_t corner, std::int64_t out) {
    double total = 0;
    for (std::int64_t p = 0; p < s.places(); ++p) total += x[s.place(corner, p)];
    y[out] = total / double(s.places());
  });
}

void avg_pool_backward(const Binding& b, const PoolSizes& s) {
  const double* dy = b.inputs[PoolBackwardInput::kDy].as<double>();
  double* dx = b.outputs[0].as<double>();
  vector(b.outputs[0]).setZero();
  visit_windows(s, [&](std::int64_t corner, std::int64_t out) {
    for (std::int64_t p = 0; p < s.places(); ++p) {
      dx[s.place(corner, p)] += dy[out] / double(s.places());
    }
  });
}

template <class Run>
Prepared prepare_forward(const NodeContext& c, Run run) {
  const PoolSizes sizes = pool_sizes(c.input(0).shape, c.output().shape, c.attrs<PoolAttrs>());
  return kernel_of([=](const Binding& b) { run(b, sizes); });
}

template <class Run>
Prepared prepare_backward(const NodeContext& c, Run run) {
  const PoolSizes sizes = pool_sizes(c.output().shape, c.input(PoolBackwardInput::kDy).shape,
                                     c.attrs<PoolBackwardAttrs>());
  return kernel_of([=](const Binding& b) { run(b, sizes); });
}

}  // namespace

Prepared prepare_max_pool2d(const NodeContext& c) { return prepare_forward(c, max_pool); }
Prepared prepare_avg_pool2d(const NodeContext& c) { return prepare_forward(c, avg_pool); }
Prepared prepare_max_pool2d_backward(const NodeContext& c) {
  return prepare_backward(c, max_pool_backward);
}
Prepared prepare_avg_pool2d_backward(const NodeContext& c) {
  return prepare_backward(c, avg_pool_backward);
}

}  // namespace keel::reference
