#include "backends/onednn/kernels/optimizer_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/onednn/kernels/optimizer_kernels.cpp"
#include <hwy/foreach_target.h>

#include "backends/onednn/simd/vec.h"

HWY_BEFORE_NAMESPACE();
namespace keel::onednn {
namespace HWY_NAMESPACE {
namespace {

void adam(const AdamTerms& t, const AdamSpan& span) {
  const Floats scale = splat(t.scale), decay = splat(t.decay), rate = splat(t.rate);
  const Floats beta1 = splat(t.beta1), gain1 = splat(t.gain1), beta2 = splat(t.beta2);
  const Floats gain2 = splat(t.gain2), shrink = splat(t.shrink), unbias = splat(t.unbias);
  const Floats eps = splat(t.eps);
  for_lanes(span.n, [&](auto part, std::size_t i) HWY_ATTR {
    const Floats p = part.load(span.p + i);
    const Floats g = hn::MulAdd(scale, part.load(span.g + i), hn::Mul(decay, p));
    const Floats m = hn::MulAdd(beta1, part.load(span.m + i), hn::Mul(gain1, g));
    const Floats v = hn::MulAdd(beta2, part.load(span.v + i), hn::Mul(hn::Mul(gain2, g), g));
    const Floats deviation = hn::Add(hn::Sqrt(hn::Mul(unbias, v)), eps);
    const Floats change = hn::Div(hn::Mul(rate, m), deviation);
    part.store(hn::MulSub(shrink, p, change), span.next_p + i);
    part.store(m, span.next_m + i);
    part.store(v, span.next_v + i);
  });
}

template <bool kMomentum>
HWY_INLINE void sgd_with(const SgdTerms& t, const SgdSpan& span) {
  const Floats scale = splat(t.scale), decay = splat(t.decay), momentum = splat(t.momentum);
  const Floats lr = splat(t.lr);
  const bool nesterov = t.nesterov;
  for_lanes(span.n, [&](auto part, std::size_t i) HWY_ATTR {
    const Floats p = part.load(span.p + i);
    const Floats g = hn::MulAdd(scale, part.load(span.g + i), hn::Mul(decay, p));
    const Floats u = kMomentum ? hn::MulAdd(momentum, part.load(span.u + i), g) : g;
    const Floats direction = nesterov ? hn::MulAdd(momentum, u, g) : u;
    part.store(hn::NegMulAdd(lr, direction, p), span.next_p + i);
    if (kMomentum) part.store(u, span.next_u + i);
  });
}

void sgd(const SgdTerms& t, const SgdSpan& span) {
  span.u ? sgd_with<true>(t, span) : sgd_with<false>(t, span);
}

void adagrad(const AdagradTerms& t, const AdagradSpan& span) {
  const Floats scale = splat(t.scale), decay = splat(t.decay), rate = splat(t.rate);
  const Floats eps = splat(t.eps);
  for_lanes(span.n, [&](auto part, std::size_t i) HWY_ATTR {
    const Floats p = part.load(span.p + i);
    const Floats g = hn::MulAdd(scale, part.load(span.g + i), hn::Mul(decay, p));
    const Floats h = hn::MulAdd(g, g, part.load(span.h + i));
    const Floats change = hn::Div(hn::Mul(rate, g), hn::Sqrt(hn::Add(h, eps)));
    part.store(hn::Sub(p, change), span.next_p + i);
    part.store(h, span.next_h + i);
  });
}

void graves(const GravesTerms& t, const GravesSpan& span) {
  const Floats scale = splat(t.scale), decay = splat(t.decay), rate = splat(t.rate);
  const Floats keep = splat(t.keep), gain = splat(t.gain), momentum = splat(t.momentum);
  const Floats eps = splat(t.eps);
  for_lanes(span.size, [&](auto part, std::size_t i) HWY_ATTR {
    const Floats p = part.load(span.p + i);
    const Floats g = hn::MulAdd(scale, part.load(span.g + i), hn::Mul(decay, p));
    const Floats n = hn::MulAdd(keep, part.load(span.n + i), hn::Mul(hn::Mul(gain, g), g));
    const Floats q = hn::MulAdd(keep, part.load(span.q + i), hn::Mul(gain, g));
    const Floats var = hn::Max(hn::NegMulAdd(q, q, n), zero());
    const Floats change = hn::Div(hn::Mul(rate, g), hn::Sqrt(hn::Add(var, eps)));
    const Floats d = hn::MulSub(momentum, part.load(span.d + i), change);
    part.store(hn::Add(p, d), span.next_p + i);
    part.store(n, span.next_n + i);
    part.store(q, span.next_q + i);
    part.store(d, span.next_d + i);
  });
}

// Two registers by turns, and at the end what does not fill two.
class SquareSum {
 public:
  HWY_INLINE SquareSum() {}  // not made by the compiler, which would make it for another target
  // Adds the squares of pairs of registers, as many as n holds, and returns their elements.
  HWY_INLINE std::size_t add_pairs(const float* x, std::size_t n) {
    std::size_t i = 0;
    for (; i + 2 * kLanes <= n; i += 2 * kLanes) {
      const Floats a = hn::LoadU(F(), x + i), b = hn::LoadU(F(), x + i + kLanes);
      even_.add_product(a, a);
      odd_.add_product(b, b);
    }
    return i;
  }
  HWY_INLINE double total_with(const float* rest, std::size_t n) {
    even_.add(odd_);
    for_lanes(n, [&](auto part, std::size_t k) HWY_ATTR {
      const Floats a = part.load(rest + k);
      even_.add_product(a, a);
    });
    return even_.total();
  }

 private:
  DoubleSum even_, odd_;
};

double squares(const float* x, std::size_t n) {
  SquareSum sum;
  const std::size_t i = sum.add_pairs(x, n);
  return sum.total_with(x + i, n - i);
}

// Zeros change no sum of squares, and pieces of only zeros are passed over.
double squares_of_rows(const TableRows& rows, std::int64_t begin, std::size_t n) {
  static_assert(kPieceElements % (2 * kLanes) == 0);
  alignas(64) float piece[kPieceElements];
  SquareSum sum;
  std::size_t rest = 0, left = 0;  // what the last piece has after its pairs
  for (std::size_t i = 0; i < n; i += kPieceElements) {
    const std::size_t size = HWY_MIN(n - i, std::size_t(kPieceElements));
    const std::int64_t first = begin + std::int64_t(i);
    if (!rows.write_out(first, first + std::int64_t(size), piece)) continue;
    rest = sum.add_pairs(piece, size);
    left = size - rest;
  }
  return sum.total_with(piece + rest, left);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace keel::onednn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace keel::onednn {

HWY_EXPORT(adam);
HWY_EXPORT(adagrad);
HWY_EXPORT(graves);
HWY_EXPORT(sgd);
HWY_EXPORT(squares);
HWY_EXPORT(squares_of_rows);

void adam_span(const AdamTerms& terms, const AdamSpan& span) {
  HWY_DYNAMIC_DISPATCH(adam)(terms, span);
}
void adagrad_span(const AdagradTerms& terms, const AdagradSpan& span) {
  HWY_DYNAMIC_DISPATCH(adagrad)(terms, span);
}
void graves_span(const GravesTerms& terms, const GravesSpan& span) {
  HWY_DYNAMIC_DISPATCH(graves)(terms, span);
}
void sgd_span(const SgdTerms& terms, const SgdSpan& span) {
  HWY_DYNAMIC_DISPATCH(sgd)(terms, span);
}
double square_sum(const float* x, std::size_t n) { return HWY_DYNAMIC_DISPATCH(squares)(x, n); }
double square_sum(const TableRows& rows, std::int64_t begin, std::size_t n) {
  return HWY_DYNAMIC_DISPATCH(squares_of_rows)(rows, begin, n);
}

}  // namespace keel::onednn
#endif
