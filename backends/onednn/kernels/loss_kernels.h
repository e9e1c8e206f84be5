// The inner loops of the losses, vectorised.
#pragma once

#include <cstdint>

namespace keel::onednn {

// The two parts of log sum exp(x) for a row of logits x (classes).
struct LogSumExp {
  double log_sum;  // of exp(x - max)
  float max;

  double value() const { return max + log_sum; }
};
LogSumExp log_sum_exp_row(const float* x, std::int64_t classes);

// The largest of n numbers; NaN if one is NaN.
float largest_of(const float* x, std::int64_t n);

// d[k] = gradient * (exp(x[k] - log_sum_exp) - share); d may be x.
struct SoftmaxGradient {
  float log_sum_exp, share, gradient;
};
void softmax_gradient_row(const float* x, float* d, std::int64_t classes,
                          const SoftmaxGradient& terms);

// sum over i of max(x, 0) - x t + log(1 + exp(-|x|))
double bce_sum(const float* x, const float* t, std::int64_t n);
// d = gradient * (sigmoid(x) - t); d may be x.
void bce_gradient(const float* x, const float* t, float* d, std::int64_t n, float gradient);

}  // namespace keel::onednn
