// Softmax, its logarithm and their gradients, a row at a time: the row stays in the first-level
// cache between its passes. Every kernel may write over its first input.
#include "src/ops/softmax.h"

#include <cmath>

#include "backends/onednn/blocks.h"
#include "backends/onednn/kernels/kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/onednn/kernels/softmax.cpp"
#include <hwy/foreach_target.h>

#include "backends/onednn/simd/math.h"

HWY_BEFORE_NAMESPACE();
namespace keel::onednn {
namespace HWY_NAMESPACE {
namespace {

// a (width) and b (width, or not there) -> out (width).
void softmax_row(const float* x, const float*, float* y, std::size_t width) {
  const Floats max = splat(max_of(x, width));
  const double sum = sum_of(width, [&](auto part, std::size_t i) HWY_ATTR {
    const Floats e = exp(hn::Sub(part.load(x + i), max));
    part.store(e, y + i);
    return e;
  });
  const Floats factor = splat(float(1 / sum));
  for_lanes(width, [&](auto part, std::size_t i)
                       HWY_ATTR { part.store(hn::Mul(part.load(y + i), factor), y + i); });
}

void softmax_backward_row(const float* dy, const float* y, float* dx, std::size_t width) {
  const double dot = sum_of(width, [&](auto part, std::size_t i) HWY_ATTR {
    return hn::Mul(part.load(dy + i), part.load(y + i));
  });
  const Floats shift = splat(float(dot));
  for_lanes(width, [&](auto part, std::size_t i) HWY_ATTR {
    part.store(hn::Mul(part.load(y + i), hn::Sub(part.load(dy + i), shift)), dx + i);
  });
}

void log_softmax_row(const float* x, const float*, float* y, std::size_t width) {
  const Floats max = splat(max_of(x, width));
  const double sum = sum_of(width, [&](auto part, std::size_t i)
                                       HWY_ATTR { return exp(hn::Sub(part.load(x + i), max)); });
  const Floats log_sum = splat(float(std::log(sum)));
  for_lanes(width, [&](auto part, std::size_t i) HWY_ATTR {
    part.store(hn::Sub(hn::Sub(part.load(x + i), max), log_sum), y + i);
  });
}

void log_softmax_backward_row(const float* dy, const float* y, float* dx, std::size_t width) {
  const double sum =
      sum_of(width, [&](auto part, std::size_t i) HWY_ATTR { return part.load(dy + i); });
  const Floats total = splat(float(sum));
  for_lanes(width, [&](auto part, std::size_t i) HWY_ATTR {
    const Floats p = exp(part.load(y + i));
    part.store(hn::NegMulAdd(p, total, part.load(dy + i)), dx + i);
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace keel::onednn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace keel::onednn {

HWY_EXPORT(softmax_row);
HWY_EXPORT(softmax_backward_row);
HWY_EXPORT(log_softmax_row);
HWY_EXPORT(log_softmax_backward_row);

namespace {

// Runs `row` on every row of the first input, of the last, which in a backward is another, and of
// the output.
template <class Row>
Prepared by_rows(const NodeContext& context, Row row) {
  const std::int64_t width = context.output().shape.back();
  const std::int64_t rows = context.output().shape.elements() / width;
  const std::int64_t block = std::max<std::int64_t>(1, kBlockElements / width);
  return kernel_of([=](const Binding& b) {
    const float* x = b.inputs[0].as<float>();
    const float* other = b.inputs.back().as<float>();
    float* y = b.outputs[0].as<float>();
    parallel_range(rows, block, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin * width; i < end * width; i += width) {
        row(x + i, other + i, y + i, std::size_t(width));
      }
    });
  });
}

}  // namespace

Prepared prepare_softmax(const NodeContext& context) {
  return by_rows(context, [](auto... args) { HWY_DYNAMIC_DISPATCH(softmax_row)(args...); });
}
Prepared prepare_softmax_backward(const NodeContext& context) {
  return by_rows(context, [](auto... args) {
    HWY_DYNAMIC_DISPATCH(softmax_backward_row)(args...);
  });
}
Prepared prepare_log_softmax(const NodeContext& context) {
  return by_rows(context, [](auto... args) { HWY_DYNAMIC_DISPATCH(log_softmax_row)(args...); });
}
Prepared prepare_log_softmax_backward(const NodeContext& context) {
  return by_rows(context, [](auto... args) {
    HWY_DYNAMIC_DISPATCH(log_softmax_backward_row)(args...);
  });
}

}  // namespace keel::onednn
#endif
