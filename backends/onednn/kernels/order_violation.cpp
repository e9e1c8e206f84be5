// Errors of an order between points; each row of the result, or of a gradient, is independent.
#include "src/ops/order_violation.h"

#include <algorithm>

#include "backends/onednn/blocks.h"
#include "backends/onednn/kernels/kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/onednn/kernels/order_violation.cpp"
#include <hwy/foreach_target.h>

#include "backends/onednn/simd/math.h"

HWY_BEFORE_NAMESPACE();
namespace keel::onednn {
namespace HWY_NAMESPACE {
namespace {

// sum_k max(0, x_k - y_k)^2
float pair_error(const float* x, const float* y, std::size_t width) {
  return float(sum_of(width, [&](auto part, std::size_t k) HWY_ATTR {
    const Floats d = at_least(hn::Sub(part.load(x + k), part.load(y + k)), 0.0f);
    return hn::Mul(d, d);
  }));
}

// sum_k += factor max(0, x_k - y_k)
void add_pair(const float* x, const float* y, float factor, float* sum, std::size_t width) {
  const Floats f = splat(factor);
  for_lanes(width, [&](auto part, std::size_t k) HWY_ATTR {
    const Floats d = at_least(hn::Sub(part.load(x + k), part.load(y + k)), 0.0f);
    part.store(hn::MulAdd(f, d, part.load(sum + k)), sum + k);
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace keel::onednn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace keel::onednn {

HWY_EXPORT(pair_error);
HWY_EXPORT(add_pair);

namespace {

using In = OrderViolationInput;

// Rows that one thread works on at a time, each against `others` rows.
std::int64_t rows_together(std::int64_t others, std::int64_t width) {
  return kBlockElements / std::max<std::int64_t>(others * width, 1) + 1;
}

void order_violation(const Binding& b, const OrderViolationSizes& sizes) {
  const float *x = b.inputs[In::kX].as<float>(), *y = b.inputs[In::kY].as<float>();
  float* e = b.outputs[0].as<float>();
  const auto [n, m, width] = sizes;
  parallel_range(n, rows_together(m, width), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      for (std::int64_t j = 0; j < m; ++j) {
        e[i * m + j] =
            HWY_DYNAMIC_DISPATCH(pair_error)(x + i * width, y + j * width, std::size_t(width));
      }
    }
  });
}

// The points, and which of them a gradient is of.
struct Side {
  const float *x, *y, *de;
  OrderViolationSizes sizes;
};

void gradient_of_x(const Side& of, float* dx) {
  const auto [n, m, width] = of.sizes;
  parallel_range(n, rows_together(m, width), [&](std::int64_t begin, std::int64_t end) {
    std::fill(dx + begin * width, dx + end * width, 0.0f);
    for (std::int64_t i = begin; i < end; ++i) {
      for (std::int64_t j = 0; j < m; ++j) {
        const float de = of.de[i * m + j];
        if (de == 0) continue;
        HWY_DYNAMIC_DISPATCH(add_pair)
        (of.x + i * width, of.y + j * width, 2 * de, dx + i * width, std::size_t(width));
      }
    }
  });
}

void gradient_of_y(const Side& of, float* dy) {
  const auto [n, m, width] = of.sizes;
  parallel_range(m, rows_together(n, width), [&](std::int64_t begin, std::int64_t end) {
    std::fill(dy + begin * width, dy + end * width, 0.0f);
    for (std::int64_t j = begin; j < end; ++j) {
      for (std::int64_t i = 0; i < n; ++i) {
        const float de = of.de[i * m + j];
        if (de == 0) continue;
        HWY_DYNAMIC_DISPATCH(add_pair)
        (of.x + i * width, of.y + j * width, -2 * de, dy + j * width, std::size_t(width));
      }
    }
  });
}

OrderViolationSizes sizes_of(const NodeContext& context) {
  return order_violation_sizes(context.input(In::kX).shape, context.input(In::kY).shape);
}

}  // namespace

Prepared prepare_order_violation(const NodeContext& context) {
  const OrderViolationSizes sizes = sizes_of(context);
  return kernel_of([sizes](const Binding& b) { order_violation(b, sizes); });
}

Prepared prepare_order_violation_backward(const NodeContext& context) {
  const OrderViolationSizes sizes = sizes_of(context);
  return kernel_of([sizes](const Binding& b) {
    const Side of{b.inputs[In::kX].as<float>(), b.inputs[In::kY].as<float>(),
                  b.inputs[In::kDe].as<float>(), sizes};
    gradient_of_x(of, b.outputs[OrderViolationOutput::kDx].as<float>());
    gradient_of_y(of, b.outputs[OrderViolationOutput::kDy].as<float>());
  });
}

}  // namespace keel::onednn
#endif
