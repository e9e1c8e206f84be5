// How a centred norm takes an element to its xhat, compiled once per instruction set.
#if defined(KEEL_BACKENDS_ONEDNN_SIMD_STANDARDIZE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KEEL_BACKENDS_ONEDNN_SIMD_STANDARDIZE_INL_H_
#undef KEEL_BACKENDS_ONEDNN_SIMD_STANDARDIZE_INL_H_
#else
#define KEEL_BACKENDS_ONEDNN_SIMD_STANDARDIZE_INL_H_
#endif

#include "backends/onednn/simd/vec.h"

HWY_BEFORE_NAMESPACE();
namespace keel::onednn {
namespace HWY_NAMESPACE {

// xhat = (x - mean) * rstd. If the mean is much larger than the deviations, a float is too coarse
// to hold it: `low` is the missing part, times rstd.
struct Standardize {
  Floats mean, rstd, low;

  // The deviation of x, to be multiplied by rstd.
  HWY_INLINE Floats off(Floats x) const { return hn::Sub(x, mean); }
  HWY_INLINE Floats operator()(Floats x) const { return hn::MulSub(off(x), rstd, low); }
  HWY_INLINE Floats true_rstd() const { return rstd; }
};

HWY_INLINE Standardize standardize_row(float mean, double rest, float rstd) {
  return {splat(mean), splat(rstd), splat(static_cast<float>(rest * rstd))};
}

// Only with a mean as large as this may x - mean be too large for a float.
inline constexpr float kFarMean = 0x1p100f;

HWY_INLINE hn::Mask<F> is_far(Floats mean) { return hn::Ge(hn::Abs(mean), splat(kFarMean)); }
HWY_INLINE bool any_far(Floats mean) { return !hn::AllFalse(F(), is_far(mean)); }
HWY_INLINE bool any_far(const float* means, std::size_t n) {
  bool far = false;
  for_lanes(n, [&](auto part, std::size_t i)
                   KEEL_LOOP_BODY { far = far || any_far(part.load(means + i)); });
  return far;
}

// The same with quarters of x, mean and deviation in the lanes whose mean is far, and the same bits
// in the others.
struct FarStandardize {
  Floats part, mean, rstd, low;

  FarStandardize() = default;
  HWY_INLINE explicit FarStandardize(const Standardize& usual)
      : part(hn::IfThenElse(is_far(usual.mean), splat(0.25f), splat(1))),
        mean(hn::Mul(usual.mean, part)),
        rstd(hn::Div(usual.rstd, part)),
        low(usual.low) {}
  HWY_INLINE Floats off(Floats x) const { return hn::MulSub(x, part, mean); }
  HWY_INLINE Floats operator()(Floats x) const { return hn::MulSub(off(x), rstd, low); }
  HWY_INLINE Floats true_rstd() const { return hn::Mul(rstd, part); }
};

// Calls body(xhat) with `usual`, or with what takes its place where a mean is far.
template <class Body>
HWY_INLINE void with_range(const Standardize& usual, const Body& body) {
  any_far(usual.mean) ? body(FarStandardize(usual)) : body(usual);
}

}  // namespace HWY_NAMESPACE
}  // namespace keel::onednn
HWY_AFTER_NAMESPACE();

#endif  // toggled guard
