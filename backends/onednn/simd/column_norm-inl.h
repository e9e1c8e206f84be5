// Parts of the column norms, compiled once per instruction set: the moments of channels over a
// block of rows, and how moments of several blocks are merged. Channels are columns of a matrix
// (inner = 1) or spans of `inner` neighbours.
#if defined(KEEL_BACKENDS_ONEDNN_SIMD_COLUMN_NORM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KEEL_BACKENDS_ONEDNN_SIMD_COLUMN_NORM_INL_H_
#undef KEEL_BACKENDS_ONEDNN_SIMD_COLUMN_NORM_INL_H_
#else
#define KEEL_BACKENDS_ONEDNN_SIMD_COLUMN_NORM_INL_H_
#endif

#include "backends/onednn/simd/short_spans-inl.h"

HWY_BEFORE_NAMESPACE();
namespace keel::onednn {
namespace HWY_NAMESPACE {

// The moments of some channels over the rows seen so far; squares: the sum of (x - mean)^2.
// Both arrays are padded to whole registers.
struct ChannelMoments {
  double *mean, *squares;
};

// Chan's rule merges n elements into `count` earlier ones: mean += d * share, d = mean' - mean, and
// squares += squares' + d^2 * cross.
struct MergeWeights {
  double share, cross;
  HWY_INLINE MergeWeights(double count, double n) : share(n / (count + n)), cross(count * share) {}
};

struct StripMoments {
  WideDoubles mean, squares;
};

// Does for a register of columns what row_moments_in_double does for a row.
template <class Part, class T>
HWY_NOINLINE StripMoments strip_moments_in_double(Part part, const T* x, const Strip& strip) {
  const WideDoubles per_row = WideDoubles::all(1 / static_cast<double>(strip.rows));
  const auto value = [&](std::size_t row) KEEL_LOOP_BODY {
    return WideDoubles::of(part.load(x + strip.offsets[row]));
  };
  WideDoubles offsets = WideDoubles::zero(), squares = offsets;
  const WideDoubles first = value(0);
  for (std::size_t row = 0; row < strip.rows; ++row) offsets = offsets + (value(row) - first);
  const WideDoubles mean = first + offsets * per_row;
  for (std::size_t row = 0; row < strip.rows; ++row) {
    const WideDoubles deviation = value(row) - mean;
    squares = squares + deviation * deviation;
  }
  return {mean, squares};
}

// Moments from float sums about a value near the mean: `sum` and `square` of the n deviations.
HWY_INLINE StripMoments moments_about(Floats centre, Floats sum, Floats square, double share) {
  const WideDoubles deviation = WideDoubles::of(sum);
  const WideDoubles low = deviation * WideDoubles::all(share);
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

// The centre for a register of columns of a strip: the mean of its first rows.
template <class Part, class T>
HWY_INLINE Floats strip_centre(Part part, const T* x, const Strip& strip) {
  const std::size_t rows = std::min(strip.rows, Strip::kMostRows / 2);
  const Floats first = part.load(x + strip.offsets[0]);
  Floats sum = zero();
  for (std::size_t row = 1; row < rows; ++row) {
    sum = hn::Add(sum, hn::Sub(part.load(x + strip.offsets[row]), first));
  }
  return hn::MulAdd(sum, splat(1 / static_cast<float>(rows)), first);
}

// Merges the moments of a strip of columns in one pass, using deviations from the mean of the rows
// before it. There are at least as many such rows as in the strip; in the first strip it is half of
// its own rows. If that mean is far off, the cancellation is thus at most as large as the term that
// the distance between the means adds to the merged sum. For sum_strip.
template <class T>
struct StripDeviations {
  static constexpr std::size_t kKinds = 2;
  enum : std::size_t { kDeviation, kSquare };
  const Strip& strip;
  const T* x;
  double seen;  // rows in `moments`
  ChannelMoments moments;
  MergeWeights weights{seen, static_cast<double>(strip.rows)};
  double per_row = 1 / static_cast<double>(strip.rows);

  // The value from which deviations are measured.
  template <class Part>
  HWY_INLINE Floats constants(Part part, std::size_t c) const {
    return seen == 0 ? strip_centre(part, x + c, strip)
                     : WideDoubles::load(moments.mean + c).floats();
  }
  template <class Part>
  HWY_INLINE void add(Part part, std::size_t i, Floats centre, Floats (&sums)[kKinds]) const {
    const Floats deviation = hn::Sub(part.load(x + i), centre);
    sums[kDeviation] = hn::Add(sums[kDeviation], deviation);
    sums[kSquare] = hn::MulAdd(deviation, deviation, sums[kSquare]);
  }
  template <class Part>
  HWY_INLINE void take(Part part, std::size_t c, Floats centre,
                       const Floats (&sums)[kKinds]) const {
    StripMoments of_strip = moments_about(centre, sums[kDeviation], sums[kSquare], per_row);
    const hn::Mask<F> is_usual = in_range(sums[kSquare]);
    if (!holds_for_all(part, is_usual)) {
      const StripMoments wide = strip_moments_in_double(part, x + c, strip);
      of_strip = {either(is_usual, of_strip.mean, wide.mean),
                  either(is_usual, of_strip.squares, wide.squares)};
    }
    if (seen > 0) return merge(moments, c, weights, of_strip);
    of_strip.mean.store(moments.mean + c);
    of_strip.squares.store(moments.squares + c);
  }
};

// Computes the moments of the columns of a tile of tokens; returns the number of kept rows.
template <class T>
HWY_INLINE double column_moments(const Tile& tile, RowMask mask, const T* x,
                                 const ChannelMoments& moments) {
  double seen = 0;
  for_strips(tile, mask, [&](const Strip& strip) HWY_ATTR {
    sum_strip(strip, tile.channels, StripDeviations<T>{strip, x, seen, moments});
    seen += static_cast<double>(strip.rows);
  });
  return seen;
}

// Merges moments of span columns, of `rows` elements each, into the moments of channels.
HWY_INLINE void merge_columns(const SpanColumns& columns, double rows, const ChannelMoments& of,
                              const ChannelMoments& into) {
  const double share = 1 / static_cast<double>(columns.inner);
  for (std::size_t c = 0; c < columns.count; ++c) {
    const double *means = of.mean + c * columns.inner, *squares = of.squares + c * columns.inner;
    double offsets = 0, within = 0, between = 0;
    for (std::size_t i = 0; i < columns.inner; ++i) offsets += means[i] - means[0];
    const double mean = means[0] + offsets * share;
    for (std::size_t i = 0; i < columns.inner; ++i) {
      within += squares[i];
      between += (means[i] - mean) * (means[i] - mean);
    }
    into.mean[columns.first + c] = mean;
    into.squares[columns.first + c] = within + rows * between;
  }
}

// Computes moments of a tile's channels over the kept rows; x is the whole tensor.
template <class T>
HWY_INLINE void tile_moments(const Tile& tile, RowMask mask, const T* x,
                             const ChannelMoments& moments) {
  if (tile.inner == 1 && column_moments(tile, mask, x, moments) > 0) return;
  std::fill_n(moments.mean, tile.channels, 0.0);
  std::fill_n(moments.squares, tile.channels, 0.0);
  if (has_short_spans(tile)) {
    return for_span_columns(tile, [&](const SpanColumns& columns) HWY_ATTR {
      HWY_ALIGN double mean[kSpanStride], squares[kSpanStride];
      const double rows = column_moments(columns.tile, mask, x, {mean, squares});
      if (rows > 0) merge_columns(columns, rows, {mean, squares}, moments);
    });
  }
  double seen = 0;
  for_strips(tile, mask, [&](const Strip& strip) HWY_ATTR {
    for (std::size_t row = 0; row < strip.rows; ++row) {
      const MergeWeights weights(seen, static_cast<double>(tile.inner));
      for (std::size_t c = 0; c < tile.channels; ++c) {
        const T* span = x + strip.offsets[row] + c * tile.inner;
        merge(moments, c, weights, row_moments(span, tile.inner, row_centre(span, tile.inner)));
      }
      seen += static_cast<double>(tile.inner);
    }
  });
}

// Loads one value into all lanes.
struct Broadcast {
  HWY_INLINE Floats load(const float* p) const { return splat(*p); }
};

// Calls body(part, constants, i) for the registers of a tile's rows, row by row;
// constants are at(c) for the columns from c on. Where such rows are not contiguous in
// memory, the processor does not prefetch them: if `result` is given, its rows are
// prefetched before they are written.
template <class At, class Body>
HWY_INLINE void for_columns(const Tile& tile, At at, Body body, const ResultRows* result) {
  const bool is_panel = tile.channels < tile.stride;
  for (std::size_t row = 0; row < tile.rows; ++row) {
    const std::size_t first = tile.offset + row * tile.stride;
    if (result && is_panel) result->prefetch(first + 4 * tile.stride, tile.channels);
    for_lanes(tile.channels,
              [=](auto part, std::size_t c) KEEL_LOOP_BODY { body(part, at(part, c), first + c); });
  }
}

// The constants of columns that are channels.
template <class At>
struct ConstantsOfColumns {
  At at;
  std::size_t first;

  template <class Part>
  HWY_INLINE auto operator()(Part part, std::size_t c) const {
    return at(part, first + c);
  }
};

// The constants of columns that are elements of short spans; Spreader has filled `room`.
template <class At>
struct ConstantsOfSpans {
  At at;
  const float* room;

  template <class Part>
  HWY_INLINE auto operator()(Part, std::size_t c) const {
    return at(SpreadReader(room, c), 0);
  }
};

// Like for_columns, but copies the values that `at` loads for a channel to its columns first.
template <class At, class Body>
HWY_INLINE void for_short_spans(const Tile& tile, At at, Body body, const ResultRows* result) {
  for_span_columns(tile, [&](const SpanColumns& columns) HWY_ATTR {
    HWY_ALIGN float room[kSpreadRoom];
    for (std::size_t c = 0; c < columns.count; ++c) {
      at(Spreader(room, c * columns.inner, columns.inner), tile.first + columns.first + c);
    }
    for_columns(columns.tile, ConstantsOfSpans<At>{at, room}, body, result);
  });
}

// Calls body(part, constants, i) for the registers at elements i of a tensor that cover a tile, in
// memory order. `constants` is at(reader, c): the reader loads values of at most six arrays of
// channels for the lanes of the register. `result` is that of for_columns.
template <class At, class Body>
HWY_INLINE void for_tile(Tile tile, At at, Body body, const ResultRows* result = nullptr) {
  if (tile.inner == 1) {
    return for_columns(tile, ConstantsOfColumns<At>{at, tile.first}, body, result);
  }
  if (has_short_spans(tile)) return for_short_spans(tile, at, body, result);
  for (std::size_t row = 0; row < tile.rows; ++row) {
    const std::size_t first = tile.offset + row * tile.stride;
    for (std::size_t c = 0; c < tile.channels; ++c) {
      const auto constants = at(Broadcast{}, tile.first + c);
      for_lanes(tile.inner, [=, at = first + c * tile.inner](auto part, std::size_t i)
                                KEEL_LOOP_BODY { body(part, constants, at + i); });
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace keel::onednn
HWY_AFTER_NAMESPACE();

#endif  // toggled guard
