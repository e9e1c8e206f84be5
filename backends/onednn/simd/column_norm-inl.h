// Parts of the column norms, compiled once per instruction set: moments of channels over a block of
// rows, and how those of several blocks are merged. Channels are columns of a matrix (inner = 1)
// or spans of `inner` neighbours.
#if defined(KEEL_BACKENDS_ONEDNN_SIMD_COLUMN_NORM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KEEL_BACKENDS_ONEDNN_SIMD_COLUMN_NORM_INL_H_
#undef KEEL_BACKENDS_ONEDNN_SIMD_COLUMN_NORM_INL_H_
#else
#define KEEL_BACKENDS_ONEDNN_SIMD_COLUMN_NORM_INL_H_
#endif

#include "backends/onednn/column_blocks.h"
#include "backends/onednn/simd/row_norm-inl.h"
#include "backends/onednn/simd/wide_doubles-inl.h"

HWY_BEFORE_NAMESPACE();
namespace keel::onednn {
namespace HWY_NAMESPACE {

// The moments of some channels over the rows seen so far; squares: the sum of (x - mean)^2.
// Both arrays are padded to whole registers.
struct ChannelMoments {
  double *mean, *squares;
};

// Chan's rule: `count` elements seen and n more make mean += d * share, d = mean' - mean, and
// squares += squares' + d^2 * cross.
struct MergeWeights {
  double share, cross;
  HWY_INLINE MergeWeights(double count, double n) : share(n / (count + n)), cross(count * share) {}
};

struct StripMoments {
  WideDoubles mean, squares;
};

// Calls body(row, chain) for rows [0, n), `chain` taking turns.
template <class Body>
HWY_INLINE void for_rows_in_turn(std::size_t n, const Body& body) {
  std::size_t row = 0;
  for (; row + kChains <= n; row += kChains) {
    body(row, 0);
    body(row + 1, 1);
    body(row + 2, 2);
    body(row + 3, 3);
  }
  for (; row < n; ++row) body(row, 0);
}

HWY_INLINE Floats sum_of_chains(const Floats (&v)[kChains]) {
  return hn::Add(hn::Add(v[0], v[1]), hn::Add(v[2], v[3]));
}

// As row_moments_in_double, for a register's worth of columns.
template <class Part>
HWY_NOINLINE StripMoments strip_moments_in_double(Part part, const float* x, std::size_t stride,
                                                  std::size_t rows) {
  const WideDoubles per_row = WideDoubles::all(1 / static_cast<double>(rows));
  WideDoubles offsets = WideDoubles::zero(), squares = offsets;
  const WideDoubles first = WideDoubles::of(part.load(x));
  for (std::size_t row = 0; row < rows; ++row) {
    offsets = offsets + (WideDoubles::of(part.load(x + row * stride)) - first);
  }
  const WideDoubles mean = first + offsets * per_row;
  for (std::size_t row = 0; row < rows; ++row) {
    const WideDoubles deviation = WideDoubles::of(part.load(x + row * stride)) - mean;
    squares = squares + deviation * deviation;
  }
  return {mean, squares};
}

// As row_centre and row_moments, for a register's worth of columns over a few rows.
template <class Part>
HWY_INLINE StripMoments strip_moments(Part part, const float* x, std::size_t stride,
                                      std::size_t rows) {
  const float per_row = 1 / static_cast<float>(rows);
  const Floats first = part.load(x);
  Floats offsets[kChains] = {zero(), zero(), zero(), zero()};
  for_rows_in_turn(rows, [&](std::size_t row, int chain) HWY_ATTR {
    offsets[chain] = hn::Add(offsets[chain], hn::Sub(part.load(x + row * stride), first));
  });
  const Floats centre = hn::MulAdd(sum_of_chains(offsets), splat(per_row), first);
  Floats deviations[kChains] = {zero(), zero(), zero(), zero()};
  Floats squares[kChains] = {zero(), zero(), zero(), zero()};
  for_rows_in_turn(rows, [&](std::size_t row, int chain) HWY_ATTR {
    const Floats deviation = hn::Sub(part.load(x + row * stride), centre);
    deviations[chain] = hn::Add(deviations[chain], deviation);
    squares[chain] = hn::MulAdd(deviation, deviation, squares[chain]);
  });
  const Floats square = sum_of_chains(squares);
  const auto in_range = hn::And(hn::Gt(square, splat(static_cast<float>(kLeastSquares))),
                                hn::Lt(square, splat(std::numeric_limits<float>::infinity())));
  const Floats outside = part.only(hn::IfThenZeroElse(in_range, splat(1)));
  if (!hn::AllTrue(F(), hn::Eq(outside, zero()))) {
    return strip_moments_in_double(part, x, stride, rows);
  }
  const WideDoubles deviation = WideDoubles::of(sum_of_chains(deviations));
  const WideDoubles low = deviation * WideDoubles::all(1 / static_cast<double>(rows));
  return {WideDoubles::of(centre) + low, WideDoubles::of(square) - deviation * low};
}

HWY_INLINE void merge(const ChannelMoments& into, std::size_t c, const MergeWeights& weights,
                      const StripMoments& more) {
  const WideDoubles mean = WideDoubles::load(into.mean + c), difference = more.mean - mean;
  const WideDoubles squares = WideDoubles::load(into.squares + c) + more.squares;
  (mean + difference * WideDoubles::all(weights.share)).store(into.mean + c);
  (squares + difference * difference * WideDoubles::all(weights.cross)).store(into.squares + c);
}

HWY_INLINE void merge(const ChannelMoments& into, std::size_t c, const MergeWeights& weights,
                      const RowMoments& more) {
  const double difference = more.mean - into.mean[c];
  into.mean[c] += difference * weights.share;
  into.squares[c] += more.sum_of_squares + difference * difference * weights.cross;
}

// Rows of a block of columns that are taken together: they stay in L1 for both passes.
HWY_INLINE std::size_t strip_rows(std::size_t columns) {
  return std::clamp<std::size_t>(8 * 1024 / columns, 8, 64);
}

// Moments of the channels of a slab; x is the whole tensor.
HWY_INLINE void slab_moments(const Slab& slab, const float* x, const ChannelMoments& moments) {
  std::fill_n(moments.mean, slab.channels, 0.0);
  std::fill_n(moments.squares, slab.channels, 0.0);
  x += slab.offset;
  const std::size_t step = slab.inner == 1 ? strip_rows(slab.channels) : 1;
  for (std::size_t row = 0; row < slab.rows; row += step, x += step * slab.stride) {
    const std::size_t rows = std::min(step, slab.rows - row);
    const MergeWeights weights(static_cast<double>(row * slab.inner),
                               static_cast<double>(rows * slab.inner));
    if (slab.inner == 1) {
      for_lanes(slab.channels, [&](auto part, std::size_t c) HWY_ATTR {
        merge(moments, c, weights, strip_moments(part, x + c, slab.stride, rows));
      });
      continue;
    }
    for (std::size_t c = 0; c < slab.channels; ++c) {
      const float* span = x + c * slab.inner;
      merge(moments, c, weights, row_moments(span, slab.inner, row_centre(span, slab.inner)));
    }
  }
}

// Reads one value into all lanes.
struct Broadcast {
  HWY_INLINE Floats load(const float* p) const { return splat(*p); }
};

// Calls body(part, constants, rows, i) for registers at element i of a tensor and at the same place
// of the rows() - 1 rows behind it, `constants` being at(reader, c): what reader loads of arrays
// of channels belongs to the lanes.
template <class At, class Body>
HWY_INLINE void for_slab(const Slab& slab, const At& at, const Body& body) {
  const auto group = [&](auto rows, std::size_t row) HWY_ATTR {
    for_lanes(slab.channels, [&](auto part, std::size_t c) HWY_ATTR {
      body(part, at(part, slab.first + c), rows, slab.offset + row * slab.stride + c);
    });
  };
  std::size_t row = 0;
  if (slab.inner == 1) {
    for (; row + 4 <= slab.rows; row += 4) group(Rows<4>{}, row);
    for (; row < slab.rows; ++row) group(Rows<1>{}, row);
    return;
  }
  for (; row < slab.rows; ++row) {
    for (std::size_t c = 0; c < slab.channels; ++c) {
      const auto constants = at(Broadcast{}, slab.first + c);
      const std::size_t first = slab.offset + row * slab.stride + c * slab.inner;
      for_lanes(slab.inner, [&](auto part, std::size_t i)
                                HWY_ATTR { body(part, constants, Rows<1>{}, first + i); });
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace keel::onednn
HWY_AFTER_NAMESPACE();

#endif  // toggled guard
