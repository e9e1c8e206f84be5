// PowerNorm of tokens that are scaled by groups first, compiled once per instruction set: what
// sum_strip sums up and writes on its way. z = x * rrms is never stored.
#if defined(KEEL_BACKENDS_ONEDNN_SIMD_POWER_COLUMNS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KEEL_BACKENDS_ONEDNN_SIMD_POWER_COLUMNS_INL_H_
#undef KEEL_BACKENDS_ONEDNN_SIMD_POWER_COLUMNS_INL_H_
#else
#define KEEL_BACKENDS_ONEDNN_SIMD_POWER_COLUMNS_INL_H_
#endif

#include "backends/onednn/simd/scaled_groups-inl.h"
#include "backends/onednn/simd/uncentred_columns-inl.h"

HWY_BEFORE_NAMESPACE();
namespace keel::onednn {
namespace HWY_NAMESPACE {

// rrms (rows, groups); a group is `width` columns.
struct Scales {
  const float* rrms;
  std::size_t groups, width;
};

// The factors of registers that lie in one group each.
struct GroupFactors {
  Scales scales;
  std::size_t first;  // column of the first register

  HWY_INLINE std::size_t group(std::size_t c) const { return (first + c) / scales.width; }
  template <class Part>
  HWY_INLINE Floats of(Part, Place place, std::size_t group) const {
    return splat(scales.rrms[place.row * scales.groups + group]);
  }
};

// The factors of elements, wherever groups end.
struct ElementFactors {
  Elements factors;

  HWY_INLINE std::size_t group(std::size_t) const { return 0; }
  template <class Part>
  HWY_INLINE Floats of(Part part, Place place, std::size_t) const {
    return part.load(factors + place.at);
  }
};

// Writes the factors of a piece of whole rows, or of one row.
HWY_INLINE void expand(const Scales& scales, const Slab& piece, float* factors) {
  for (std::size_t r = 0; r < piece.rows; ++r) {
    const float* const rrms = scales.rrms + (piece.offset / piece.stride + r) * scales.groups;
    for (std::size_t c = 0; c < piece.channels; ++c) {
      *factors++ = rrms[(piece.first + c) / scales.width];
    }
  }
}

// Calls body(piece, factors) for pieces that cover a part (see for_row_parts).
template <class Body>
HWY_INLINE void with_factors(const Scales& scales, const Slab& part, const Body& body) {
  if (scales.groups == 1 || scales.width % kLanes == 0) {
    return body(part, GroupFactors{scales, part.first});
  }
  for_pieces(part, [&](const Slab& piece) HWY_ATTR {
    HWY_ALIGN float factors[kPartElements];
    expand(scales, piece, factors);
    body(piece, ElementFactors{{factors, piece.offset}});
  });
}

// y = z * rpsi * gain + bias (gain and bias null or not) where kWrites, and the sums of z^2 unless
// `squares` is null. x and y are whole tensors, all others of the columns of a strip.
template <class Factors, bool kWrites>
struct StripPowerForward {
  static constexpr std::size_t kKinds = 1, kConstants = 3;
  struct Constants {
    Floats rpsi, gain, bias;
    std::size_t group;
  };
  const Strip& strip;
  Factors factors;
  const float *x, *rpsi, *gain, *bias;
  ResultRows y;
  double* squares;

  template <class Part>
  HWY_INLINE Constants constants(Part part, std::size_t c) const {
    return {part.load(rpsi + c), gain ? part.load(gain + c) : splat(1),
            bias ? part.load(bias + c) : zero(), factors.group(c)};
  }
  template <class Part>
  HWY_INLINE Floats z(Part part, Place place, const Constants& k) const {
    return hn::Mul(part.load(x + place.at), factors.of(part, place, k.group));
  }
  template <class Part>
  HWY_INLINE void add(Part part, Place place, const Constants& k, Floats (&sums)[kKinds]) const {
    const Floats v = z(part, place, k);
    sums[0] = hn::MulAdd(v, v, sums[0]);
    if (kWrites) y.put(part, hn::MulAdd(hn::Mul(v, k.rpsi), k.gain, k.bias), place.at);
  }
  template <class Part>
  HWY_INLINE void take(Part part, std::size_t c, const Constants& k,
                       const Floats (&sums)[kKinds]) const {
    if (squares == nullptr) return;
    add_to(squares + c, holds_for_all(part, in_range(sums[0])) ? WideDoubles::of(sums[0])
                                                               : squares_in_double(part, c, k));
  }
  // Where squares leave the range of a float.
  template <class Part>
  HWY_NOINLINE WideDoubles squares_in_double(Part part, std::size_t c, const Constants& k) const {
    WideDoubles sum = WideDoubles::zero();
    for (std::size_t r = 0; r < strip.rows; ++r) {
      const WideDoubles v = WideDoubles::of(z(part, {strip.numbers[r], strip.offsets[r] + c}, k));
      sum = sum + v * v;
    }
    return sum;
  }
};

// dz = rdx * (dy * gain - xhat * slope), xhat = z * rpsi (gain and slope null or not) where
// kWrites, and the sums of dy and of dy * xhat. x and dy are whole tensors, dz begins at element
// `first`, all others are of the columns of a strip.
template <class Factors, bool kWrites>
struct StripPowerBackward {
  static constexpr std::size_t kKinds = 2, kConstants = 4;
  enum : std::size_t { kDy, kDyXhat };
  struct Constants {
    Floats rpsi, rdx, slope, gain;
    std::size_t group;
  };
  Factors factors;
  const float *x, *dy, *rpsi, *rdx, *slope, *gain;
  float* dz;
  std::size_t first;
  GradientSums into;

  template <class Part>
  HWY_INLINE Constants constants(Part part, std::size_t c) const {
    return {part.load(rpsi + c), part.load(rdx + c), slope ? part.load(slope + c) : zero(),
            gain ? part.load(gain + c) : splat(1), factors.group(c)};
  }
  template <class Part>
  HWY_INLINE void add(Part part, Place place, const Constants& k, Floats (&sums)[kKinds]) const {
    const Floats z = hn::Mul(part.load(x + place.at), factors.of(part, place, k.group));
    const Floats xhat = hn::Mul(z, k.rpsi), g = part.load(dy + place.at);
    sums[kDy] = hn::Add(sums[kDy], g);
    sums[kDyXhat] = hn::MulAdd(g, xhat, sums[kDyXhat]);
    if (!kWrites) return;
    const Floats result = hn::Mul(k.rdx, hn::NegMulAdd(xhat, k.slope, hn::Mul(g, k.gain)));
    part.store(result, dz + (place.at - first));
  }
  template <class Part>
  HWY_INLINE void take(Part, std::size_t c, const Constants&, const Floats (&sums)[kKinds]) const {
    add_to(into.dy + c, WideDoubles::of(sums[kDy]));
    add_to(into.dy_xhat + c, WideDoubles::of(sums[kDyXhat]));
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace keel::onednn
HWY_AFTER_NAMESPACE();

#endif  // toggled guard
