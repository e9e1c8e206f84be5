// Parts of the row norms that do not centre, compiled once per instruction set: the sum of squares
// of a row, and the gradient of x times a factor that depends on this sum.
#if defined(KEEL_BACKENDS_ONEDNN_SIMD_ROW_RMS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KEEL_BACKENDS_ONEDNN_SIMD_ROW_RMS_INL_H_
#undef KEEL_BACKENDS_ONEDNN_SIMD_ROW_RMS_INL_H_
#else
#define KEEL_BACKENDS_ONEDNN_SIMD_ROW_RMS_INL_H_
#endif

#include "backends/onednn/simd/row_norm-inl.h"

HWY_BEFORE_NAMESPACE();
namespace keel::onednn {
namespace HWY_NAMESPACE {

// Sums in double throughout, for rows whose squares leave the range of a float.
template <class T>
HWY_NOINLINE double row_squares_in_double(const T* x, std::size_t n) {
  EightSums squares;
  for_lanes(n, [&](auto part, std::size_t i) KEEL_LOOP_BODY {
    const WideDoubles v = WideDoubles::of(part.load(x + i));
    squares.add(v * v);  // exact
  });
  return squares.total();
}

// sum of x^2
template <class T>
HWY_INLINE double row_squares(const T* x, std::size_t n) {
  ChainedSum squares;
  for_runs(
      n,
      [&](auto part, std::size_t i, int chain) KEEL_LOOP_BODY {
        const Floats v = part.load(x + i);
        squares.add_product(chain, v, v);
      },
      [&]() KEEL_LOOP_BODY { squares.end_run(); });
  const double sum = squares.total();
  return sum > kLeastSquares && std::isfinite(sum) ? sum : row_squares_in_double(x, n);
}

// Some rows of x, the factor of each, and what they are written to.
template <class T>
struct ScaledRows {
  const T* x;   // of all rows
  float* rstd;  // of all rows
  ResultRows y;
  RowRange range;
};

// The of_squares of write_scaled for rstd = 1 / sqrt(mean(x^2) + eps).
HWY_INLINE auto inverse_rms(std::size_t width, double eps) {
  return [=](double squares) { return 1 / std::sqrt(squares / double(width) + eps); };
}

// Saves rstd = of_squares(sum of x^2) of each row and writes the row: the register at i is
// finish(row)(x * rstd, part, i).
template <class T, class OfSquares, class Finish>
HWY_INLINE void write_scaled(const ScaledRows<T>& rows, const OfSquares& of_squares,
                             const Finish& finish) {
  const std::size_t width = rows.range.width;
  for (std::size_t row = rows.range.first; row < rows.range.last; ++row) {
    const T* const x = rows.x + row * width;
    rows.y.prefetch(row * width, width);
    rows.y.prefetch_input(x + std::max(width, kAhead), width);
    const auto rstd = float(of_squares(row_squares(x, width)));
    rows.rstd[row] = rstd;
    const auto of_row = finish(row);
    write_row(rows.y, row * width, width,
              [=, factor = splat(rstd)](auto part, std::size_t i)
                  KEEL_LOOP_BODY { return of_row(hn::Mul(part.load(x + i), factor), part, i); });
  }
}

// sum of dy * gain * x * factor
template <class T>
HWY_INLINE double row_products(const T* x, const T* dy, std::size_t n, float factor,
                               const RowAffine& affine) {
  ChainedSum products;
  for_runs(
      n,
      [&](auto part, std::size_t i, int chain) KEEL_LOOP_BODY {
        const Floats xhat = hn::Mul(part.load(x + i), splat(factor));
        products.add_product(chain, affine.scale(part, part.load(dy + i), i), xhat);
      },
      [&]() KEEL_LOOP_BODY { products.end_run(); });
  return products.total();
}

// xhat = x * factor;   dx = scale * (g - xhat * slope).
struct ScaledGradient {
  Floats factor, slope, scale;

  HWY_INLINE Floats xhat(Floats x) const { return hn::Mul(x, factor); }
  HWY_INLINE Floats dx(Floats g, Floats xhat_of_x) const {
    return hn::Mul(scale, hn::NegMulAdd(xhat_of_x, slope, g));
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace keel::onednn
HWY_AFTER_NAMESPACE();

#endif  // toggled guard
