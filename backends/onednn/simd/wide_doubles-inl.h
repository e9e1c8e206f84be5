// A register of floats widened to double, compiled once per instruction set.
#if defined(KEEL_BACKENDS_ONEDNN_SIMD_WIDE_DOUBLES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KEEL_BACKENDS_ONEDNN_SIMD_WIDE_DOUBLES_INL_H_
#undef KEEL_BACKENDS_ONEDNN_SIMD_WIDE_DOUBLES_INL_H_
#else
#define KEEL_BACKENDS_ONEDNN_SIMD_WIDE_DOUBLES_INL_H_
#endif

#include <type_traits>

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

// `a` in the lanes where the condition holds, `b` in the others. Slow: for what is rare.
HWY_INLINE WideDoubles either(hn::Mask<F> condition, const WideDoubles& a, const WideDoubles& b) {
  HWY_ALIGN double of_a[kLanes], result[kLanes];
  HWY_ALIGN float takes_a[kLanes];
  hn::Store(hn::IfThenElseZero(condition, splat(1)), F(), takes_a);
  a.store(of_a);
  b.store(result);
  for (std::size_t k = 0; k < kLanes; ++k) {
    if (takes_a[k] != 0) result[k] = of_a[k];
  }
  return WideDoubles::load(result);
}

// The sum of a register's lanes: its halves are added until one lane is left.
template <class Tag>
HWY_INLINE double folded(Tag, hn::Vec<Tag> v) {
#if HWY_TARGET == HWY_SCALAR
  return hn::GetLane(v);
#else
  if constexpr (hn::MaxLanes(Tag()) == 1) {
    return hn::GetLane(v);
  } else {
    const hn::Half<Tag> half;
    return folded(half, hn::Add(hn::LowerHalf(half, v), hn::UpperHalf(half, v)));
  }
#endif
}

// Eight sums in double, where element i of what is added belongs to sum i mod 8: the same sums
// whether registers have eight floats or sixteen.
class EightSums {
 public:
  HWY_INLINE EightSums() : sums_(WideDoubles::zero()) {}
  HWY_INLINE void add(const WideDoubles& v) {
    if constexpr (kLanes == 16) {
      sums_.low = hn::Add(hn::Add(sums_.low, v.low), v.high);
    } else {
      sums_ = sums_ + v;
    }
  }
  // Eight floats.
  template <class Eight>
  HWY_INLINE void add_eight(Eight v) {
    if constexpr (kLanes == 16) {
      sums_.low = hn::Add(sums_.low, hn::PromoteTo(D(), v));
    } else {
      add(WideDoubles::of(v));
    }
  }
  HWY_INLINE double total() const {
    return folded(D(), kLanes == 16 ? sums_.low : hn::Add(sums_.low, sums_.high));
  }

 private:
  WideDoubles sums_;  // of 16 floats, `low` has all eight
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
