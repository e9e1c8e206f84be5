// The inner loops of the optimizer steps, vectorised: one pass over the tensors.
#pragma once

#include <cstddef>

namespace keel::onednn {

// g' = scale g + decay p;  m' = beta1 m + gain1 g';  v' = beta2 v + gain2 g'^2;
// p' = shrink p - rate m' / (sqrt(unbias v') + eps)
struct AdamTerms {
  float scale, decay, beta1, gain1, beta2, gain2, shrink, rate, unbias, eps;
};
struct AdamSpan {
  const float *p, *g, *m, *v;
  float *next_p, *next_m, *next_v;  // may be p, m, v
  std::size_t n;
};
void adam_span(const AdamTerms& terms, const AdamSpan& span);

// g' = scale g + decay p;  u' = momentum u + g';  p' = p - lr (nesterov ? g' + momentum u' : u')
struct SgdTerms {
  float scale, decay, momentum, lr;
  bool nesterov;
};
struct SgdSpan {
  const float *p, *g, *u;  // u null: 0, and u' is not stored
  float *next_p, *next_u;  // may be p, u
  std::size_t n;
};
void sgd_span(const SgdTerms& terms, const SgdSpan& span);

// sum of x^2, in double.
double square_sum(const float* x, std::size_t n);

}  // namespace keel::onednn
