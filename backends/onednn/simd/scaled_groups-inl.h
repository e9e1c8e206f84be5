// A group scaling and its gradient, compiled once per instruction set: what the op shares with the
// norms that have one in front. A group is a row here, in passes over data that stays in L1.
#if defined(KEEL_BACKENDS_ONEDNN_SIMD_SCALED_GROUPS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KEEL_BACKENDS_ONEDNN_SIMD_SCALED_GROUPS_INL_H_
#undef KEEL_BACKENDS_ONEDNN_SIMD_SCALED_GROUPS_INL_H_
#else
#define KEEL_BACKENDS_ONEDNN_SIMD_SCALED_GROUPS_INL_H_
#endif

#include <cmath>

#include "backends/onednn/simd/row_rms-inl.h"

HWY_BEFORE_NAMESPACE();
namespace keel::onednn {
namespace HWY_NAMESPACE {

// rrms = 1 / sqrt(mean(x^2) + eps) of a group.
HWY_INLINE float scale_of_group(const float* x, std::size_t width, double eps) {
  return static_cast<float>(1 /
                            std::sqrt(row_squares(x, width) / static_cast<double>(width) + eps));
}

// A tensor's elements from `first` on, at the places that they have in it.
struct Elements {
  const float* data;
  std::size_t first = 0;
  HWY_INLINE const float* operator+(std::size_t i) const { return data + (i - first); }
};

// dx = rrms * (dy - xhat * mean(dy * xhat)), xhat = x * rrms. dx may be dy.
struct ScaledGroupsGradient {
  const float *x, *rrms;
  Elements dy;
  ResultRows dx;
};

template <std::size_t kRows>
HWY_INLINE void scale_groups_backward(const ScaledGroupsGradient& of, std::size_t row,
                                      std::size_t width) {
  const float *x = of.x + row * width, *dy = of.dy + row * width;
  const float* const rrms = of.rrms + row;
  float slopes[kRows];
  for (std::size_t k = 0; k < kRows; ++k) {
    of.dx.prefetch((row + k) * width, width);
    const double products = row_products(x + k * width, dy + k * width, width, rrms[k], {});
    slopes[k] = static_cast<float>(products / static_cast<double>(width));
  }
  for (std::size_t k = 0; k < kRows; ++k, x += width, dy += width) {
    const ScaledGradient gradient{splat(rrms[k]), splat(slopes[k]), splat(rrms[k])};
    for_lanes(width,
              [=, dx = of.dx, at = (row + k) * width](auto part, std::size_t i) KEEL_LOOP_BODY {
                const Floats xhat = gradient.xhat(part.load(x + i));
                dx.put(part, gradient.dx(part.load(dy + i), xhat), at + i);
              });
  }
}
HWY_INLINE void scale_groups_backward(const ScaledGroupsGradient& of, const RowRange& range) {
  for_row_groups(range, [&](auto rows, std::size_t row)
                            HWY_ATTR { scale_groups_backward<rows()>(of, row, range.width); });
}

}  // namespace HWY_NAMESPACE
}  // namespace keel::onednn
HWY_AFTER_NAMESPACE();

#endif  // toggled guard
