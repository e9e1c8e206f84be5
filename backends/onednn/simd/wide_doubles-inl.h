// A register of floats widened to double, compiled once per instruction set.
#if defined(KEEL_BACKENDS_ONEDNN_SIMD_WIDE_DOUBLES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KEEL_BACKENDS_ONEDNN_SIMD_WIDE_DOUBLES_INL_H_
#undef KEEL_BACKENDS_ONEDNN_SIMD_WIDE_DOUBLES_INL_H_
#else
#define KEEL_BACKENDS_ONEDNN_SIMD_WIDE_DOUBLES_INL_H_
#endif

#include "backends/onednn/simd/vec.h"

HWY_BEFORE_NAMESPACE();
namespace keel::onednn {
namespace HWY_NAMESPACE {

// kLanes doubles.
struct WideDoubles {
  Doubles low, high;

  static HWY_INLINE WideDoubles zero() { return {hn::Zero(D()), hn::Zero(D())}; }
  static HWY_INLINE WideDoubles of(Floats v) {
#if HWY_TARGET == HWY_SCALAR
    return {hn::PromoteTo(D(), v), hn::Zero(D())};
#else
    const NarrowF half;
    return {hn::PromoteTo(D(), hn::LowerHalf(half, v)), hn::PromoteTo(D(), hn::UpperHalf(half, v))};
#endif
  }
  static HWY_INLINE WideDoubles all(double v) { return {hn::Set(D(), v), hn::Set(D(), v)}; }
  static HWY_INLINE WideDoubles load(const double* p) {
    return {hn::LoadU(D(), p), kLanes > 1 ? hn::LoadU(D(), p + hn::Lanes(D())) : hn::Zero(D())};
  }
  HWY_INLINE void store(double* p) const {
    hn::StoreU(low, D(), p);
    if (kLanes > 1) hn::StoreU(high, D(), p + hn::Lanes(D()));
  }
  HWY_INLINE Floats floats() const {
#if HWY_TARGET == HWY_SCALAR
    return hn::DemoteTo(F(), low);
#else
    const NarrowF half;
    return hn::Combine(F(), hn::DemoteTo(half, high), hn::DemoteTo(half, low));
#endif
  }
  // The sum of all lanes, in an order that depends only on the instruction set.
  HWY_INLINE double total() const { return hn::GetLane(hn::SumOfLanes(D(), hn::Add(low, high))); }
  HWY_INLINE WideDoubles sqrt() const { return {hn::Sqrt(low), hn::Sqrt(high)}; }
  friend HWY_INLINE WideDoubles operator+(const WideDoubles& a, const WideDoubles& b) {
    return {hn::Add(a.low, b.low), hn::Add(a.high, b.high)};
  }
  friend HWY_INLINE WideDoubles operator-(const WideDoubles& a, const WideDoubles& b) {
    return {hn::Sub(a.low, b.low), hn::Sub(a.high, b.high)};
  }
  friend HWY_INLINE WideDoubles operator*(const WideDoubles& a, const WideDoubles& b) {
    return {hn::Mul(a.low, b.low), hn::Mul(a.high, b.high)};
  }
  friend HWY_INLINE WideDoubles operator/(const WideDoubles& a, const WideDoubles& b) {
    return {hn::Div(a.low, b.low), hn::Div(a.high, b.high)};
  }
};

// 1 / sqrt(v) to float precision, for every v whose result a float can represent. Computed in float
// if v fits one: that takes a third of the time. A lane's result depends only on its own v.
HWY_INLINE Floats reciprocal_sqrt(const WideDoubles& v) {
  const Floats one = splat(1), narrow = v.floats();
  const auto is_normal = hn::And(hn::Ge(narrow, splat(std::numeric_limits<float>::min())),
                                 hn::Lt(narrow, splat(std::numeric_limits<float>::max())));
  const Floats of_normal = hn::Div(one, hn::Sqrt(narrow));
  if (hn::AllTrue(F(), is_normal)) return of_normal;
  return hn::IfThenElse(is_normal, of_normal, (WideDoubles::of(one) / v.sqrt()).floats());
}

}  // namespace HWY_NAMESPACE
}  // namespace keel::onednn
HWY_AFTER_NAMESPACE();

#endif  // toggled guard
