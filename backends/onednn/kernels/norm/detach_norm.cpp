// Layer norm with detached statistics takes a row at a time, in passes over data that stays in L1.
#include "src/ops/norm/detach_norm.h"

#include "backends/onednn/kernels/kernels.h"
#include "backends/onednn/kernels/norm/statistic.h"
#include "backends/onednn/row_blocks.h"

namespace keel::onednn {
namespace {

using In = DetachNormInput;
using BackIn = DetachNormBackwardInput;

}  // namespace
}  // namespace keel::onednn

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/onednn/kernels/norm/detach_norm.cpp"
#include <hwy/foreach_target.h>

#include "backends/onednn/simd/centred_rows-inl.h"
#include "backends/onednn/simd/row_gradient-inl.h"

HWY_BEFORE_NAMESPACE();
namespace keel::onednn {
namespace HWY_NAMESPACE {
namespace {

void forward(const Binding& b, const NormStatistic& statistic, const RowRange& range) {
  with_elements(b.inputs[In::kX], [&]<class T>(T) HWY_ATTR {
    write_centred<T>(b, statistic, range,
                     [](Floats xhat, auto, std::size_t) KEEL_LOOP_BODY { return xhat; });
  });
}

template <class T>
HWY_INLINE double sum_of_row(const T* dy, std::size_t n) {
  ChainedSum sum;
  for_runs(
      n,
      [&](auto part, std::size_t i, int chain)
          KEEL_LOOP_BODY { sum.add(chain, part.load(dy + i)); },
      [&]() KEEL_LOOP_BODY { sum.end_run(); });
  return sum.total();
}

// Where the variance is detached, dx = rstd * (dy - mean_dy).
template <class T>
void backward_of_mean(const Binding& b, bool detach_mean, std::size_t row, std::size_t width) {
  const T* dy = b.inputs[BackIn::kDy].as<T>() + row * width;
  const ResultRows dx(b, width);
  const Floats rstd = splat(b.inputs[BackIn::kRstd].as<float>()[row]);
  const Floats mean_dy = detach_mean ? zero() : splat(float(sum_of_row(dy, width) / double(width)));
  write_row(dx, row * width, width, [=](auto part, std::size_t i) KEEL_LOOP_BODY {
    return hn::Mul(rstd, hn::Sub(part.load(dy + i), mean_dy));
  });
}

// Where the mean is detached, dx = rstd * (dy - xhat * slope).
template <class T>
void backward_of_variance(const Binding& b, const NormStatistic& statistic, std::size_t row,
                          std::size_t width) {
  const SavedRow<T> saved{
      b.inputs[BackIn::kX].as<T>() + row * width, b.inputs[BackIn::kDy].as<T>() + row * width,
      b.inputs[BackIn::kMean].as<float>()[row], b.inputs[BackIn::kRstd].as<float>()[row], width};
  const double count = variance_count(std::int64_t(width), statistic.unbiased);
  RowGradient gradient = row_gradient(saved, {nullptr, nullptr},
                                      double(width) / count * slope_factor(statistic, saved.rstd));
  gradient.mean_g = zero();
  const ResultRows dx(b, width);
  const GradientRows<T> rows = gradient_rows(b.inputs[BackIn::kX].as<T>(),
                                             b.inputs[BackIn::kDy].as<T>(), dx, row * width, width);
  write_gradients(rows, {nullptr, nullptr}, nullptr, gradient);
}

void backward(const Binding& b, const DetachNormAttrs& attrs, const RowRange& range) {
  with_elements(b.inputs[BackIn::kDy], [&]<class T>(T) HWY_ATTR {
    for (std::size_t row = range.first; row < range.last; ++row) {
      if (attrs.detach_variance) {
        backward_of_mean<T>(b, attrs.detach_mean, row, range.width);
      } else {
        backward_of_variance<T>(b, attrs.statistic(), row, range.width);
      }
    }
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace keel::onednn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace keel::onednn {

HWY_EXPORT(forward);
HWY_EXPORT(backward);

Prepared prepare_detach_norm(const NodeContext& context) {
  const auto attrs = context.attrs<DetachNormAttrs>();
  const RowBlocks blocks = independent_row_blocks(row_sizes(context.output().shape, attrs.axes));
  return kernel_of_rows(blocks, [=](const Binding& b, const RowRange& range) {
    HWY_DYNAMIC_DISPATCH(forward)(b, attrs.statistic(), range);
  });
}

Prepared prepare_detach_norm_backward(const NodeContext& context) {
  const auto attrs = context.attrs<DetachNormAttrs>();
  const RowBlocks blocks = independent_row_blocks(row_sizes(context.output().shape, attrs.axes));
  return kernel_of_rows(blocks, [=](const Binding& b, const RowRange& range) {
    HWY_DYNAMIC_DISPATCH(backward)(b, attrs, range);
  });
}

}  // namespace keel::onednn
#endif
