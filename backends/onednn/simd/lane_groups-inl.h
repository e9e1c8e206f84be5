// Groups of a few neighbouring elements, compiled once per instruction set. A register holds the
// same element of kLanes groups, one group a lane, so that a lane's results depend only on its
// group and nothing is summed over lanes. A Width is std::size_t, or a constant for widths that are
// worth loops of their own.
#if defined(KEEL_BACKENDS_ONEDNN_SIMD_LANE_GROUPS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KEEL_BACKENDS_ONEDNN_SIMD_LANE_GROUPS_INL_H_
#undef KEEL_BACKENDS_ONEDNN_SIMD_LANE_GROUPS_INL_H_
#else
#define KEEL_BACKENDS_ONEDNN_SIMD_LANE_GROUPS_INL_H_
#endif

#include "backends/onednn/kernels/norm/statistic.h"
#include "backends/onednn/simd/row_norm-inl.h"
#include "backends/onednn/simd/wide_doubles-inl.h"

HWY_BEFORE_NAMESPACE();
namespace keel::onednn {
namespace HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR

// Copies kLanes neighbouring groups of `width` elements: to[i * kLanes + j] is element i of the
// j-th group.
template <class Width>
HWY_INLINE void load_groups(const float* from, Width width, float* to) {
  std::copy_n(from, std::size_t(width), to);
}
// The inverse of load_groups.
template <class Width>
HWY_INLINE void store_groups(const float* from, Width width, float* to) {
  std::copy_n(from, std::size_t(width), to);
}

#else

// Loads a register whose g-th four lanes come from p + 4 * g * stride.
template <class Tag>
HWY_INLINE hn::Vec<Tag> load_fours(Tag d, const float* p, std::size_t stride) {
  if constexpr (hn::MaxLanes(Tag()) <= 4) {
    return hn::LoadU(d, p);
  } else {
    const hn::Half<Tag> half;
    return hn::Combine(d, load_fours(half, p + hn::MaxLanes(half) * stride, stride),
                       load_fours(half, p, stride));
  }
}
// The inverse of load_fours.
template <class Tag>
HWY_INLINE void store_fours(Tag d, hn::Vec<Tag> v, float* p, std::size_t stride) {
  if constexpr (hn::MaxLanes(Tag()) <= 4) {
    hn::StoreU(v, d, p);
  } else {
    const hn::Half<Tag> half;
    store_fours(half, hn::LowerHalf(half, v), p, stride);
    store_fours(half, hn::UpperHalf(half, v), p + hn::MaxLanes(half) * stride, stride);
  }
}

// Transposes the matrix of four by four that the r-th four lanes of the registers make, for all r.
HWY_INLINE void transpose_fours(Floats (&v)[4]) {
  const F d;
  const hn::RepartitionToWide<F> wide;
  const auto pairs = [&](Floats a) { return hn::BitCast(wide, a); };
  const auto low01 = pairs(hn::InterleaveLower(d, v[0], v[1]));
  const auto low23 = pairs(hn::InterleaveLower(d, v[2], v[3]));
  const auto high01 = pairs(hn::InterleaveUpper(d, v[0], v[1]));
  const auto high23 = pairs(hn::InterleaveUpper(d, v[2], v[3]));
  v[0] = hn::BitCast(d, hn::InterleaveLower(wide, low01, low23));
  v[1] = hn::BitCast(d, hn::InterleaveUpper(wide, low01, low23));
  v[2] = hn::BitCast(d, hn::InterleaveLower(wide, high01, high23));
  v[3] = hn::BitCast(d, hn::InterleaveUpper(wide, high01, high23));
}

// Copies elements i to i + 3 of kLanes groups.
HWY_INLINE void load_tile(const float* from, std::size_t width, std::size_t i, float* to) {
  Floats v[4];
  unrolled<4>([&](std::size_t r)
                  KEEL_LOOP_BODY { v[r] = load_fours(F(), from + r * width + i, width); });
  transpose_fours(v);
  unrolled<4>([&](std::size_t k) KEEL_LOOP_BODY { hn::StoreU(v[k], F(), to + (i + k) * kLanes); });
}
HWY_INLINE void store_tile(const float* from, std::size_t width, std::size_t i, float* to) {
  Floats v[4];
  unrolled<4>([&](std::size_t k)
                  KEEL_LOOP_BODY { v[k] = hn::LoadU(F(), from + (i + k) * kLanes); });
  transpose_fours(v);
  unrolled<4>([&](std::size_t r)
                  KEEL_LOOP_BODY { store_fours(F(), v[r], to + r * width + i, width); });
}

// Copies kLanes neighbouring groups of `width` elements: to[i * kLanes + j] is element i of the
// j-th group.
template <class Width>
HWY_INLINE void load_groups(const float* from, Width width, float* to) {
  const F d;
  Floats v[3];
  switch (std::size_t(width)) {
    case 1:
      return hn::StoreU(hn::LoadU(d, from), d, to);
    case 2:
      hn::LoadInterleaved2(d, from, v[0], v[1]);
      hn::StoreU(v[0], d, to);
      return hn::StoreU(v[1], d, to + kLanes);
    case 3:
      hn::LoadInterleaved3(d, from, v[0], v[1], v[2]);
      return unrolled<3>([&](std::size_t k)
                             KEEL_LOOP_BODY { hn::StoreU(v[k], d, to + k * kLanes); });
    default:
      for (std::size_t i = 0; i + 4 <= width; i += 4) load_tile(from, width, i, to);
      if (width % 4 != 0) load_tile(from, width, width - 4, to);  // some elements once more
  }
}

// The inverse of load_groups.
template <class Width>
HWY_INLINE void store_groups(const float* from, Width width, float* to) {
  const F d;
  const auto v = [&](std::size_t k) KEEL_LOOP_BODY { return hn::LoadU(d, from + k * kLanes); };
  switch (std::size_t(width)) {
    case 1:
      return hn::StoreU(v(0), d, to);
    case 2:
      return hn::StoreInterleaved2(v(0), v(1), d, to);
    case 3:
      return hn::StoreInterleaved3(v(0), v(1), v(2), d, to);
    default:
      for (std::size_t i = 0; i + 4 <= width; i += 4) store_tile(from, width, i, to);
      if (width % 4 != 0) store_tile(from, width, width - 4, to);
  }
}

#endif

// A sum in each lane. Runs of at most eight terms are added in two chains, and to the total then,
// so that a sum of 64 terms has at most eleven roundings of any term.
class LaneSum {
 public:
  HWY_INLINE LaneSum() : chains_{zero(), zero()}, total_(zero()) {}
  // Term k of a run.
  HWY_INLINE void add(std::size_t k, Floats v) {
    chains_[k % 2] = k < 2 ? v : hn::Add(chains_[k % 2], v);
  }
  HWY_INLINE void add_product(std::size_t k, Floats a, Floats b) {
    chains_[k % 2] = k < 2 ? hn::Mul(a, b) : hn::MulAdd(a, b, chains_[k % 2]);
  }
  HWY_INLINE void end_run(std::size_t terms) {
    total_ = hn::Add(total_, terms == 1 ? chains_[0] : hn::Add(chains_[0], chains_[1]));
  }
  HWY_INLINE Floats total() const { return total_; }

 private:
  Floats chains_[2], total_;
};

// Calls body(i, k) for the elements i of a group, which are the k-th of a run, and after each run
// end_of_run(terms).
template <class Width, class Body, class EndOfRun>
HWY_INLINE void for_elements(Width width, const Body& body, const EndOfRun& end_of_run) {
  std::size_t i = 0;
  const auto run = [&]<std::size_t kTerms>(std::integral_constant<std::size_t, kTerms>)
                       KEEL_LOOP_BODY {
                         unrolled<kTerms>([&](std::size_t k) KEEL_LOOP_BODY { body(i + k, k); });
                         end_of_run(kTerms);
                         i += kTerms;
                       };
  while (i + 8 <= width) run(std::integral_constant<std::size_t, 8>());
  if (width & 4) run(std::integral_constant<std::size_t, 4>());
  if (width & 2) run(std::integral_constant<std::size_t, 2>());
  if (width & 1) run(std::integral_constant<std::size_t, 1>());
}

// Element i of kLanes groups.
HWY_INLINE Floats element(const float* groups, std::size_t i) {
  return hn::LoadU(F(), groups + i * kLanes);
}

// The constants that the statistics of groups of one width need, in every lane.
struct LaneStatistic {
  NormStatistic of;
  double width, count;  // elements; the divisor of squares
  Floats share, inverse_count, eps;
  Floats least;  // groups with a smaller sum of squares are computed in double

  HWY_INLINE LaneStatistic(const NormStatistic& s, std::size_t elements)
      : of(s),
        width(double(elements)),
        count(variance_count(std::int64_t(elements), s.unbiased)),
        share(splat(float(1 / width))),
        inverse_count(splat(float(1 / count))),
        eps(splat(float(s.eps))),
        least(splat(least_squares(s.eps))) {}
  // 1 / s from sums of squares that are normal floats.
  HWY_INLINE Floats rstd(Floats squares) const {
    const Floats variance = hn::Mul(squares, inverse_count);
    return hn::Div(splat(1), of.eps_outside ? hn::Add(hn::Sqrt(variance), eps)
                                            : hn::Sqrt(hn::Add(variance, eps)));
  }
  // Beside a usual eps, the squares that underflow are nothing. A small eps needs them, and a huge
  // one is no float itself.
  static HWY_INLINE float least_squares(double at_eps) {
    if (at_eps > 0x1p100) return std::numeric_limits<float>::infinity();
    return at_eps < 0x1p-30 ? float(kLeastSquares) : 0;
  }
  HWY_INLINE WideDoubles rstd(const WideDoubles& squares) const {
    const WideDoubles one = WideDoubles::all(1), wide_eps = WideDoubles::all(of.eps);
    const WideDoubles variance = squares / WideDoubles::all(count);
    return one / (of.eps_outside ? variance.sqrt() + wide_eps : (variance + wide_eps).sqrt());
  }
};

// Computes in double, for groups whose squares leave the range of a float.
HWY_NOINLINE inline Standardize standardize_in_double(const float* x, std::size_t n,
                                                      const LaneStatistic& statistic) {
  WideDoubles sum = WideDoubles::zero(), squares = WideDoubles::zero();
  for (std::size_t i = 0; i < n; ++i) sum = sum + WideDoubles::of(element(x, i));
  const WideDoubles mean = sum / WideDoubles::all(statistic.width);
  const Floats high = mean.floats();
  const WideDoubles rest = mean - WideDoubles::of(high);
  for (std::size_t i = 0; i < n; ++i) {
    const WideDoubles deviation = WideDoubles::of(element(x, i)) - mean;
    squares = squares + deviation * deviation;
  }
  const WideDoubles rstd = statistic.rstd(squares);
  return {high, rstd.floats(), (rest * rstd).floats()};
}

// Computes xhat of kLanes groups in two passes: the centre is the mean to about float precision,
// relative to the first element, so that a constant group has exactly its value; the deviations'
// own mean corrects it.
template <class Width>
HWY_INLINE Standardize standardize_groups(const float* x, Width n, const LaneStatistic& statistic) {
  const Floats first = element(x, 0), share = statistic.share;
  LaneSum offsets, deviations, squares;
  for_elements(
      n,
      [&](std::size_t i, std::size_t k)
          KEEL_LOOP_BODY { offsets.add(k, hn::Sub(element(x, i), first)); },
      [&](std::size_t terms) KEEL_LOOP_BODY { offsets.end_run(terms); });
  const Floats centre = hn::MulAdd(offsets.total(), share, first);
  for_elements(
      n,
      [&](std::size_t i, std::size_t k) KEEL_LOOP_BODY {
        const Floats deviation = hn::Sub(element(x, i), centre);
        deviations.add(k, deviation);
        squares.add_product(k, deviation, deviation);
      },
      [&](std::size_t terms) KEEL_LOOP_BODY {
        deviations.end_run(terms);
        squares.end_run(terms);
      });
  const Floats low = hn::Mul(deviations.total(), share), mean = hn::Add(centre, low);
  const Floats sum = hn::NegMulAdd(low, deviations.total(), squares.total());
  const Floats rstd = statistic.rstd(sum), rest = hn::Sub(low, hn::Sub(mean, centre));
  const Standardize usual{mean, rstd, hn::Mul(rest, rstd)};
  const auto in_range = hn::And(hn::Ge(sum, statistic.least),
                                hn::Le(squares.total(), splat(std::numeric_limits<float>::max())));
  if (hn::AllTrue(F(), in_range)) return usual;
  const Standardize wide = standardize_in_double(x, n, statistic);
  return {hn::IfThenElse(in_range, usual.mean, wide.mean),
          hn::IfThenElse(in_range, usual.rstd, wide.rstd),
          hn::IfThenElse(in_range, usual.low, wide.low)};
}

// slope_factor for each lane.
HWY_INLINE Floats slope_factors(const LaneStatistic& statistic, Floats rstd) {
  if (!statistic.of.eps_outside) return splat(1);
  float factors[kLanes];
  hn::StoreU(rstd, F(), factors);
  for (float& r : factors) r = float(slope_factor(statistic.of, r));
  return hn::LoadU(F(), factors);
}

}  // namespace HWY_NAMESPACE
}  // namespace keel::onednn
HWY_AFTER_NAMESPACE();

#endif  // toggled guard
