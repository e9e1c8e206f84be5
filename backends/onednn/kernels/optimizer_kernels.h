// The inner loops of the optimizer steps, vectorised: one pass over the tensors.
#pragma once

#include <cstddef>

#include "backends/onednn/kernels/table_rows.h"

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

// g' = scale g + decay p;  h' = h + g'^2;  p' = p - rate g' / sqrt(h' + eps)
struct AdagradTerms {
  float scale, decay, rate, eps;
};
struct AdagradSpan {
  const float *p, *g, *h;
  float *next_p, *next_h;  // may be p, h
  std::size_t n;
};
void adagrad_span(const AdagradTerms& terms, const AdagradSpan& span);

// g' = scale g + decay p;  n' = keep n + gain g'^2;  q' = keep q + gain g';
// d' = momentum d - rate g' / sqrt(max(n' - q'^2, 0) + eps);  p' = p + d'
struct GravesTerms {
  float scale, decay, keep, gain, momentum, rate, eps;
};
struct GravesSpan {
  const float *p, *g, *n, *q, *d;
  float *next_p, *next_n, *next_q, *next_d;  // may be p, n, q, d
  std::size_t size;
};
void graves_span(const GravesTerms& terms, const GravesSpan& span);

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

// The sum of x^2, in double.
double square_sum(const float* x, std::size_t n);
// The same sum, with the same bits, over elements begin to begin + n - 1 of a table's gradient.
double square_sum(const TableRows& rows, std::int64_t begin, std::size_t n);

}  // namespace keel::onednn
