// Channels whose spans are too short to fill registers, compiled once per instruction set. Some
// channels of a tile are treated as a matrix whose columns are their elements.
#if defined(KEEL_BACKENDS_ONEDNN_SIMD_SHORT_SPANS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KEEL_BACKENDS_ONEDNN_SIMD_SHORT_SPANS_INL_H_
#undef KEEL_BACKENDS_ONEDNN_SIMD_SHORT_SPANS_INL_H_
#else
#define KEEL_BACKENDS_ONEDNN_SIMD_SHORT_SPANS_INL_H_
#endif

#include <cassert>

#include "backends/onednn/simd/column_strips-inl.h"

HWY_BEFORE_NAMESPACE();
namespace keel::onednn {
namespace HWY_NAMESPACE {

// Spans up to this length count as short, if there are enough rows: the work done once for a column
// takes as long as a quarter of a span's own sum.
inline constexpr std::size_t kShortSpan = 64, kColumnsOfRow = 4;
// The number of columns of a matrix, and the length of an array with one element a column;
// registers may reach beyond the last column.
inline constexpr std::size_t kSpanColumns = 512, kSpanStride = kSpanColumns + 16;
// Room for the constants that are loaded for a channel, from at most six arrays, one copy a column.
inline constexpr std::size_t kSpreadRoom = 6 * kSpanStride;

HWY_INLINE bool has_short_spans(const Tile& tile) {
  return tile.inner > 1 && tile.inner <= std::min(kShortSpan, kColumnsOfRow * tile.rows);
}

// Channels [first, first + count) of a tile, as a tile of `count` * inner channels of one element.
struct SpanColumns {
  Tile tile;
  std::size_t first, count, inner;
};

// Calls body(columns) for ranges that together cover the channels of a tile of short spans.
template <class Body>
HWY_INLINE void for_span_columns(const Tile& tile, const Body& body) {
  const std::size_t most = kSpanColumns / tile.inner;
  for (std::size_t c = 0; c < tile.channels; c += most) {
    const std::size_t count = std::min(most, tile.channels - c);
    body(SpanColumns{{.rows = tile.rows,
                      .channels = count * tile.inner,
                      .inner = 1,
                      .stride = tile.stride,
                      .offset = tile.offset + c * tile.inner,
                      .first = 0},
                     c,
                     count,
                     tile.inner});
  }
}

// Fills a span with a value; it also overwrites some elements after the span.
HWY_INLINE void fill_span(Floats value, std::size_t inner, float* span) {
  for (std::size_t i = 0; i < inner; i += kLanes) hn::StoreU(value, F(), span + i);
}

// values[c * inner + i] = of_channels[c], for all columns.
HWY_INLINE void spread(const SpanColumns& columns, const float* of_channels, float* values) {
  for (std::size_t c = 0; c < columns.count; ++c) {
    float* const span = values + c * columns.inner;
    fill_span(splat(of_channels[columns.first + c]), columns.inner, span);
  }
}

// to[c] += the sum of values[c * inner + i] over i, for all channels.
HWY_INLINE void add_spans(const SpanColumns& columns, const double* values, double* to) {
  for (std::size_t c = 0; c < columns.count; ++c) {
    const double* const span = values + c * columns.inner;
    double sum = 0;
    for (std::size_t i = 0; i < columns.inner; ++i) sum += span[i];
    to[columns.first + c] += sum;
  }
}

// Copies the values loaded from the arrays of a channel to all columns of that channel: the k-th
// load goes to row k of `room`.
class Spreader {
 public:
  HWY_INLINE Spreader(float* room, std::size_t column, std::size_t inner)
      : span_(room + column), end_(room + kSpreadRoom), inner_(inner) {}
  HWY_INLINE Floats load(const float* p) const {
    assert(span_ < end_);
    const Floats value = splat(*p);
    fill_span(value, inner_, span_);
    span_ += kSpanStride;
    return value;
  }

 private:
  mutable float* span_;
  const float* end_;
  std::size_t inner_;
};

// Repeats the same loads, but for a register of columns.
class SpreadReader {
 public:
  HWY_INLINE SpreadReader(const float* room, std::size_t column) : from_(room + column) {}
  HWY_INLINE Floats load(const float*) const {
    const Floats value = hn::LoadU(F(), from_);
    from_ += kSpanStride;
    return value;
  }

 private:
  mutable const float* from_;
};

}  // namespace HWY_NAMESPACE
}  // namespace keel::onednn
HWY_AFTER_NAMESPACE();

#endif  // toggled guard
