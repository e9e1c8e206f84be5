#include "backends/onednn/kernels/loss_kernels.h"

#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/onednn/kernels/loss_kernels.cpp"
#include <hwy/foreach_target.h>

#include "backends/onednn/simd/math.h"

HWY_BEFORE_NAMESPACE();
namespace keel::onednn {
namespace HWY_NAMESPACE {
namespace {

LogSumExp log_sum_exp(const float* x, std::size_t classes) {
  const float largest = max_of(x, classes);
  const Floats max = splat(largest);
  const double sum = sum_of(classes, [&](auto part, std::size_t i)
                                         HWY_ATTR { return exp(hn::Sub(part.load(x + i), max)); });
  return {std::log(sum), largest};
}

float largest(const float* x, std::size_t n) { return max_of(x, n); }

void softmax_gradient(const float* x, float* d, std::size_t classes, const SoftmaxGradient& terms) {
  const Floats log_sum_exp = splat(terms.log_sum_exp), share = splat(terms.share);
  const Floats gradient = splat(terms.gradient);
  for_lanes(classes, [&](auto part, std::size_t i) HWY_ATTR {
    const Floats p = exp(hn::Sub(part.load(x + i), log_sum_exp));
    part.store(hn::Mul(gradient, hn::Sub(p, share)), d + i);
  });
}

double bce(const float* x, const float* t, std::size_t n) {
  return sum_of(n, [&](auto part, std::size_t i) HWY_ATTR {
    const Floats v = part.load(x + i);
    const Floats linear = hn::NegMulAdd(v, part.load(t + i), at_least(v, 0.0f));
    return hn::Add(linear, softplus_of_minus_abs(v));
  });
}

void bce_backward(const float* x, const float* t, float* d, std::size_t n, float gradient) {
  const Floats factor = splat(gradient);
  for_lanes(n, [&](auto part, std::size_t i) HWY_ATTR {
    const Floats error = hn::Sub(sigmoid(part.load(x + i)), part.load(t + i));
    part.store(hn::Mul(factor, error), d + i);
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace keel::onednn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace keel::onednn {

HWY_EXPORT(log_sum_exp);
HWY_EXPORT(largest);
HWY_EXPORT(softmax_gradient);
HWY_EXPORT(bce);
HWY_EXPORT(bce_backward);

LogSumExp log_sum_exp_row(const float* x, std::int64_t classes) {
  return HWY_DYNAMIC_DISPATCH(log_sum_exp)(x, std::size_t(classes));
}
float largest_of(const float* x, std::int64_t n) {
  return HWY_DYNAMIC_DISPATCH(largest)(x, std::size_t(n));
}
void softmax_gradient_row(const float* x, float* d, std::int64_t classes,
                          const SoftmaxGradient& terms) {
  HWY_DYNAMIC_DISPATCH(softmax_gradient)(x, d, std::size_t(classes), terms);
}
double bce_sum(const float* x, const float* t, std::int64_t n) {
  return HWY_DYNAMIC_DISPATCH(bce)(x, t, std::size_t(n));
}
void bce_gradient(const float* x, const float* t, float* d, std::int64_t n, float gradient) {
  HWY_DYNAMIC_DISPATCH(bce_backward)(x, t, d, std::size_t(n), gradient);
}

}  // namespace keel::onednn
#endif
