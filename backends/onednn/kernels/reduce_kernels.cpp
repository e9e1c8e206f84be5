#include "backends/onednn/kernels/reduce_kernels.h"

#include <algorithm>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/onednn/kernels/reduce_kernels.cpp"
#include <hwy/foreach_target.h>

#include "backends/onednn/simd/vec.h"

HWY_BEFORE_NAMESPACE();
namespace keel::onednn {
namespace HWY_NAMESPACE {
namespace {

constexpr std::size_t kDoubles = hn::MaxLanes(D());

HWY_INLINE Doubles load_doubles(const float* p) {
  return hn::PromoteTo(D(), hn::LoadU(NarrowF(), p));
}
HWY_INLINE Doubles load_doubles(const double* p) { return hn::LoadU(D(), p); }

// The first `count` elements, `rest` in the other lanes.
HWY_INLINE Doubles load_first(const float* p, std::size_t count, Doubles rest) {
  const auto v = hn::MaskedLoad(hn::FirstN(NarrowF(), count), NarrowF(), p);
  return hn::IfThenElse(hn::FirstN(D(), count), hn::PromoteTo(D(), v), rest);
}
HWY_INLINE Doubles load_first(const double* p, std::size_t count, Doubles rest) {
  const auto mask = hn::FirstN(D(), count);
  return hn::IfThenElse(mask, hn::MaskedLoad(mask, D(), p), rest);
}

struct Sum {
  static constexpr double kNothing = 0;
  static HWY_INLINE Doubles join(Doubles a, Doubles b) { return hn::Add(a, b); }
  static double join(double a, double b) { return a + b; }
};

struct Max {
  static constexpr double kNothing = -std::numeric_limits<double>::infinity();
  static HWY_INLINE Doubles join(Doubles a, Doubles b) {
    return hn::IfThenElse(hn::Or(hn::Ge(a, b), hn::IsNaN(a)), a, b);
  }
  static double join(double a, double b) { return a >= b || a != a ? a : b; }
};

template <class Op>
HWY_INLINE double join_lanes(Doubles v) {
  double lanes[kDoubles];
  hn::StoreU(v, D(), lanes);
  double all = lanes[0];
  for (std::size_t i = 1; i < kDoubles; ++i) all = Op::join(all, lanes[i]);
  return all;
}

template <class Op, class T>
HWY_INLINE double row(const T* x, std::size_t n) {
  const Doubles nothing = hn::Set(D(), Op::kNothing);
  Doubles a = nothing, b = nothing, c = nothing, d = nothing;
  std::size_t i = 0;
  for (; i + 4 * kDoubles <= n; i += 4 * kDoubles) {
    a = Op::join(a, load_doubles(x + i));
    b = Op::join(b, load_doubles(x + i + kDoubles));
    c = Op::join(c, load_doubles(x + i + 2 * kDoubles));
    d = Op::join(d, load_doubles(x + i + 3 * kDoubles));
  }
  for (; i + kDoubles <= n; i += kDoubles) a = Op::join(a, load_doubles(x + i));
  if (i < n) b = Op::join(b, load_first(x + i, n - i, nothing));
  return join_lanes<Op>(Op::join(Op::join(a, b), Op::join(c, d)));
}

template <class Op, class T>
HWY_INLINE void columns(const Panel<T>& panel, double* out) {
  const auto width = std::size_t(panel.columns);
  const auto stride = std::size_t(panel.stride);
  std::fill_n(out, width, Op::kNothing);
  std::int64_t r = 0;
  const auto add_rows = [&]<int kRows>(const T* x) HWY_ATTR {
    std::size_t i = 0;
    for (; i + kDoubles <= width; i += kDoubles) {
      Doubles sum = hn::LoadU(D(), out + i);
      for (int k = 0; k < kRows; ++k) sum = Op::join(sum, load_doubles(x + k * stride + i));
      hn::StoreU(sum, D(), out + i);
    }
    for (; i < width; ++i) {
      for (int k = 0; k < kRows; ++k) out[i] = Op::join(out[i], double(x[k * stride + i]));
    }
  };
  for (; r + 4 <= panel.rows; r += 4) {
    add_rows.template operator()<4>(panel.x + r * panel.stride);
  }
  for (; r < panel.rows; ++r) add_rows.template operator()<1>(panel.x + r * panel.stride);
}

template <class T>
double any_row(Reduction op, const T* x, std::size_t n) {
  return op == Reduction::kSum ? row<Sum>(x, n) : row<Max>(x, n);
}

template <class T>
void any_columns(Reduction op, const Panel<T>& panel, double* out) {
  op == Reduction::kSum ? columns<Sum>(panel, out) : columns<Max>(panel, out);
}

double row_f32(Reduction op, const float* x, std::size_t n) { return any_row(op, x, n); }
double row_f64(Reduction op, const double* x, std::size_t n) { return any_row(op, x, n); }
void columns_f32(Reduction op, const Panel<float>& panel, double* out) {
  any_columns(op, panel, out);
}
void columns_f64(Reduction op, const Panel<double>& panel, double* out) {
  any_columns(op, panel, out);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace keel::onednn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace keel::onednn {

HWY_EXPORT(row_f32);
HWY_EXPORT(row_f64);
HWY_EXPORT(columns_f32);
HWY_EXPORT(columns_f64);

double reduce_row(Reduction op, const float* x, std::int64_t n) {
  return HWY_DYNAMIC_DISPATCH(row_f32)(op, x, std::size_t(n));
}
double reduce_row(Reduction op, const double* x, std::int64_t n) {
  return HWY_DYNAMIC_DISPATCH(row_f64)(op, x, std::size_t(n));
}
void reduce_columns(Reduction op, const Panel<float>& panel, double* out) {
  HWY_DYNAMIC_DISPATCH(columns_f32)(op, panel, out);
}
void reduce_columns(Reduction op, const Panel<double>& panel, double* out) {
  HWY_DYNAMIC_DISPATCH(columns_f64)(op, panel, out);
}

}  // namespace keel::onednn
#endif
