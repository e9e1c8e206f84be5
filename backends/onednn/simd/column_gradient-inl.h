// Parts of the backward of column norms, compiled once per instruction set: the sums over a tile
// that the gradient of a channel needs.
#if defined(KEEL_BACKENDS_ONEDNN_SIMD_COLUMN_GRADIENT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KEEL_BACKENDS_ONEDNN_SIMD_COLUMN_GRADIENT_INL_H_
#undef KEEL_BACKENDS_ONEDNN_SIMD_COLUMN_GRADIENT_INL_H_
#else
#define KEEL_BACKENDS_ONEDNN_SIMD_COLUMN_GRADIENT_INL_H_
#endif

#include "backends/onednn/simd/column_norm-inl.h"
#include "backends/onednn/simd/row_gradient-inl.h"

HWY_BEFORE_NAMESPACE();
namespace keel::onednn {
namespace HWY_NAMESPACE {

// Per channel: sums over rows of xhat, of dy and of dy * xhat; padded to whole registers.
struct ChannelSums {
  double *xhat, *dy, *dy_xhat;
};

// The inputs of a backward: tensors x and dy, and the saved mean and rstd (channels).
template <class T>
struct SavedChannels {
  const T *x, *dy;
  const float *mean, *rstd;
};

// The sums of a strip of columns, for sum_strip. `saved` holds x and dy as whole tensors, but mean
// and rstd of these channels only.
template <class T, class Xhat>
struct StripGradient {
  static constexpr std::size_t kKinds = 3;
  enum : std::size_t { kXhat, kDy, kDyXhat };
  const SavedChannels<T>& saved;
  const ChannelSums& into;
  bool is_first;  // true when there are no earlier sums to add to

  template <class Part>
  HWY_INLINE Xhat constants(Part part, std::size_t c) const {
    return Xhat{Standardize{part.load(saved.mean + c), part.load(saved.rstd + c), zero()}};
  }
  template <class Part>
  HWY_INLINE void add(Part part, std::size_t i, const Xhat& k, Floats (&sums)[kKinds]) const {
    const Floats xhat = hn::Mul(k.off(part.load(saved.x + i)), k.rstd);
    const Floats dy = part.load(saved.dy + i);
    sums[kXhat] = hn::Add(sums[kXhat], xhat);
    sums[kDy] = hn::Add(sums[kDy], dy);
    sums[kDyXhat] = hn::MulAdd(dy, xhat, sums[kDyXhat]);
  }
  template <class Part>
  HWY_INLINE void take(Part, std::size_t c, const Xhat&, const Floats (&sums)[kKinds]) const {
    add_to(into.xhat + c, WideDoubles::of(sums[kXhat]), is_first);
    add_to(into.dy + c, WideDoubles::of(sums[kDy]), is_first);
    add_to(into.dy_xhat + c, WideDoubles::of(sums[kDyXhat]), is_first);
  }
};

// Adds the terms of channel c from the row of spans at `row`.
template <class T>
HWY_INLINE void add_span(const SavedChannels<T>& saved, const Tile& tile, std::size_t row,
                         std::size_t c, const ChannelSums& sums) {
  const std::size_t first = row + c * tile.inner;
  const RowSums span = row_sums(
      SavedRow<T>{saved.x + first, saved.dy + first, saved.mean[c], saved.rstd[c], tile.inner},
      {nullptr, nullptr});
  sums.xhat[c] += span.xhat;
  sums.dy[c] += span.g;
  sums.dy_xhat[c] += span.g_xhat;
}

// Sums the columns of a tile of tokens over the kept rows; false if no row is kept.
template <class T>
HWY_INLINE bool column_sums(const Tile& tile, RowMask mask, const SavedChannels<T>& saved,
                            const ChannelSums& sums) {
  const bool far = any_far(saved.mean, tile.channels);
  bool is_first = true;
  for_strips(tile, mask, [&](const Strip& strip) HWY_ATTR {
    far ? sum_strip(strip, tile.channels, StripGradient<T, FarStandardize>{saved, sums, is_first})
        : sum_strip(strip, tile.channels, StripGradient<T, Standardize>{saved, sums, is_first});
    is_first = false;
  });
  return !is_first;
}

// Sums a tile over the rows that are kept.
template <class T>
HWY_INLINE void tile_sums(const Tile& tile, RowMask mask, const SavedChannels<T>& saved,
                          const ChannelSums& sums) {
  const SavedChannels<T> from_first{saved.x, saved.dy, saved.mean + tile.first,
                                    saved.rstd + tile.first};
  if (tile.inner == 1 && column_sums(tile, mask, from_first, sums)) return;
  for (double* sum : {sums.xhat, sums.dy, sums.dy_xhat}) std::fill_n(sum, tile.channels, 0.0);
  if (has_short_spans(tile)) {
    return for_span_columns(tile, [&](const SpanColumns& columns) HWY_ATTR {
      HWY_ALIGN float mean[kSpanStride], rstd[kSpanStride];
      HWY_ALIGN double xhat[kSpanStride], dy[kSpanStride], dy_xhat[kSpanStride];
      spread(columns, from_first.mean, mean);
      spread(columns, from_first.rstd, rstd);
      if (!column_sums(columns.tile, mask, SavedChannels<T>{saved.x, saved.dy, mean, rstd},
                       {xhat, dy, dy_xhat})) {
        return;
      }
      add_spans(columns, xhat, sums.xhat);
      add_spans(columns, dy, sums.dy);
      add_spans(columns, dy_xhat, sums.dy_xhat);
    });
  }
  for_strips(tile, mask, [&](const Strip& strip) HWY_ATTR {
    for (std::size_t row = 0; row < strip.rows; ++row) {
      for (std::size_t c = 0; c < tile.channels; ++c) {
        add_span(from_first, tile, strip.offsets[row], c, sums);
      }
    }
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace keel::onednn
HWY_AFTER_NAMESPACE();

#endif  // toggled guard
