// Pooling. Our own kernel finds the largest element, because oneDNN ignores
// NaN; oneDNN does the rest.
#include "src/ops/pool2d.h"

#include <algorithm>

#include "backends/onednn/blocks.h"
#include "backends/onednn/kernels/empty_sum.h"
#include "backends/onednn/kernels/kernels.h"
#include "backends/onednn/primitives.h"
#include "src/ops/image_order.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/onednn/kernels/pool2d.cpp"
#include <hwy/foreach_target.h>

#include "backends/onednn/simd/vec.h"

#ifndef KEEL_BACKENDS_ONEDNN_KERNELS_POOL2D_WINDOWS_
#define KEEL_BACKENDS_ONEDNN_KERNELS_POOL2D_WINDOWS_
namespace keel::onednn {

// Images whose pixels hold `channels` elements next to each other: (n, h, w, c), or (n, c, h, w)
// taken as n * c images of one channel.
struct Windows {
  std::int64_t channels, height, width, out_height, out_width, window, stride;

  std::int64_t out_row() const { return out_width * channels; }  // elements
  // Where the windows of row `row` of y, counted through all images, begin in x.
  std::int64_t corner(std::int64_t row) const {
    const std::int64_t image = row / out_height, i = row % out_height;
    return (image * height + i * stride) * width * channels;
  }
};

}  // namespace keel::onednn
#endif

HWY_BEFORE_NAMESPACE();
namespace keel::onednn {
namespace HWY_NAMESPACE {
namespace {

using Bytes = hn::Rebind<std::uint8_t, Bits>;

// The largest elements over the window (of kWindow, or any size if 0) whose first pixel is at x,
// and their places, for the lanes of `part`. Only a larger element or the first NaN replaces what
// is there, so the first of equal ones stays.
template <int kWindow, class Part>
HWY_INLINE void window_max(const Windows& s, const float* x, const Part& part, float* y,
                           std::uint8_t* index) {
  const std::int64_t window = kWindow > 0 ? kWindow : s.window;
  Floats best = part.load(x), best_place = zero(), place = zero();
  for (std::int64_t u = 0; u < window; ++u) {
    for (std::int64_t v = 0; v < window; ++v) {
      const Floats candidate = part.load(x + (u * s.width + v) * s.channels);
      const auto stays = hn::Or(hn::Le(candidate, best), hn::IsNaN(best));
      best = hn::IfThenElse(stays, best, candidate);
      best_place = hn::IfThenElse(stays, best_place, place);
      place = hn::Add(place, splat(1));
    }
  }
  part.store(best, y);
  hn::StoreU(hn::DemoteTo(Bytes(), hn::ConvertTo(Bits(), best_place)), Bytes(), index);
}

// All channels of one pixel of y and of index. The last register overlaps the one before it.
template <int kWindow>
HWY_INLINE void pixel_max(const Windows& s, const float* x, float* y, std::uint8_t* index) {
  const auto channels = std::size_t(s.channels);
  if (channels < kLanes) {
    std::uint8_t places[kLanes];
    window_max<kWindow>(s, x, First(channels), y, places);
    std::copy_n(places, channels, index);
    return;
  }
  for (std::size_t i = 0; i < channels; i += kLanes) {
    const std::size_t c = std::min(i, channels - kLanes);
    window_max<kWindow>(s, x + c, Whole(), y + c, index + c);
  }
}

template <int kWindow>
void row_max(const Windows& s, const float* x, float* y, std::uint8_t* index) {
  for (std::int64_t j = 0; j < s.out_width; ++j) {
    pixel_max<kWindow>(s, x + j * s.stride * s.channels, y + j * s.channels,
                       index + j * s.channels);
  }
}

// One row of y and of index. Windows of two are by far the most common.
void max_pool_row(const Windows& s, const float* x, float* y, std::uint8_t* index) {
  s.window == 2 ? row_max<2>(s, x, y, index) : row_max<0>(s, x, y, index);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace keel::onednn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace keel::onednn {
namespace {

HWY_EXPORT(max_pool_row);

void max_pool(const Binding& b, const Windows& s) {
  using Out = MaxPoolOutput;
  const std::int64_t row = s.out_row(), rows = b.outputs[Out::kY].elements() / row;
  const std::int64_t at_once = std::max<std::int64_t>(1, kBlockElements / (row * s.window));
  parallel_range(rows, at_once, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      HWY_DYNAMIC_DISPATCH(max_pool_row)
      (s, b.inputs[0].as<float>() + s.corner(i), b.outputs[Out::kY].as<float>() + i * row,
       b.outputs[Out::kIndex].as<std::uint8_t>() + i * row);
    }
  });
}

PoolSpec backward_spec(const NodeContext& context, bool is_max) {
  const auto& attrs = context.attrs<PoolBackwardAttrs>();
  return {.x = image_sizes(attrs.shape, attrs.channels_last),
          .y = image_sizes(context.input(PoolBackwardInput::kDy).shape, attrs.channels_last),
          .window = attrs.window,
          .stride = attrs.stride,
          .is_max = is_max,
          .channels_last = attrs.channels_last};
}

Prepared prepare_backward(const PoolSpec& spec) {
  return spec.y.elements() == 0 ? do_nothing() : make_pool_backward(spec);
}

}  // namespace

Prepared prepare_max_pool2d(const NodeContext& context) {
  const auto& attrs = context.attrs<PoolAttrs>();
  const Shape x = image_sizes(context.input(0).shape, attrs.channels_last);
  const Shape y = image_sizes(context.output().shape, attrs.channels_last);
  if (y.elements() == 0) return do_nothing();
  const std::int64_t channels = attrs.channels_last ? x[1] : 1;
  const Windows windows{channels, x[2], x[3], y[2], y[3], attrs.window, attrs.stride};
  return kernel_of([windows](const Binding& b) { max_pool(b, windows); });
}

Prepared prepare_avg_pool2d(const NodeContext& context) {
  const auto& attrs = context.attrs<PoolAttrs>();
  const PoolSpec spec{.x = image_sizes(context.input(0).shape, attrs.channels_last),
                      .y = image_sizes(context.output().shape, attrs.channels_last),
                      .window = attrs.window,
                      .stride = attrs.stride,
                      .channels_last = attrs.channels_last};
  return spec.y.elements() == 0 ? do_nothing() : make_avg_pool(spec);
}

Prepared prepare_max_pool2d_backward(const NodeContext& context) {
  return prepare_backward(backward_spec(context, true));
}
Prepared prepare_avg_pool2d_backward(const NodeContext& context) {
  return prepare_backward(backward_spec(context, false));
}

}  // namespace keel::onednn
#endif
