// The final passes of column norms that subtract a mean, compiled once per instruction set: they
// compute y and dx of a tile from constants of its channels, and fill the rows left out by a mask.
#if defined(KEEL_BACKENDS_ONEDNN_SIMD_CENTRED_COLUMNS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KEEL_BACKENDS_ONEDNN_SIMD_CENTRED_COLUMNS_INL_H_
#undef KEEL_BACKENDS_ONEDNN_SIMD_CENTRED_COLUMNS_INL_H_
#else
#define KEEL_BACKENDS_ONEDNN_SIMD_CENTRED_COLUMNS_INL_H_
#endif

#include "backends/onednn/simd/kept_rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace keel::onednn {
namespace HWY_NAMESPACE {

// y = (x - mean) * scale + shift; all except x are (channels).
template <class T>
struct CentredForward {
  const T* x;
  const float *mean, *scale, *shift;
};

// Writes the part of y that belongs to a tile; y is a whole tensor.
template <class Xhat, class T>
HWY_INLINE void write_centred_by(const Tile& tile, const CentredForward<T>& in,
                                 const ResultRows& y) {
  struct Constants {
    Xhat scaled;
    Floats shift;
  };
  const auto at = [in](auto reader, std::size_t c) KEEL_LOOP_BODY {
    const Standardize usual{reader.load(in.mean + c), reader.load(in.scale + c), zero()};
    return Constants{Xhat{usual}, reader.load(in.shift + c)};
  };
  with_put(y, [&](auto put) KEEL_LOOP_BODY {
    const auto body = [x = in.x, put](auto part, const Constants& k, std::size_t i) KEEL_LOOP_BODY {
      put(part, hn::MulAdd(k.scaled.off(part.load(x + i)), k.scaled.rstd, k.shift), i);
    };
    for_tile(tile, at, body, &y);
  });
}
template <class T>
HWY_INLINE void write_centred(const Tile& tile, const CentredForward<T>& in, const ResultRows& y) {
  any_far(in.mean + tile.first, tile.channels) ? write_centred_by<FarStandardize>(tile, in, y)
                                               : write_centred_by<Standardize>(tile, in, y);
}

// The arrays (channels) of xhat = (x - mean) * rstd - low.
struct CentredChannels {
  const float *mean, *rstd, *low;

  template <class Reader>
  HWY_INLINE Standardize at(const Reader& reader, std::size_t c) const {
    return {reader.load(mean + c), reader.load(rstd + c), reader.load(low + c)};
  }
};

// dx = scale * (dy - mean_dy - xhat * slope); all except x and dy are (channels).
template <class T>
struct CentredBackward {
  CentredChannels channels;
  const T *x, *dy;
  const float *scale, *mean_dy, *slope;

  static HWY_INLINE Floats dx(Floats dy, Floats xhat, Floats scale, Floats mean_dy, Floats slope) {
    return hn::Mul(scale, hn::NegMulAdd(xhat, slope, hn::Sub(dy, mean_dy)));
  }
};
// dx = scale * dy - mean_dy - xhat * slope: mean_dy and slope hold the scale, and terms without it.
template <class T>
struct ShiftedBackward : CentredBackward<T> {
  static HWY_INLINE Floats dx(Floats dy, Floats xhat, Floats scale, Floats mean_dy, Floats slope) {
    return hn::MulSub(scale, dy, hn::MulAdd(xhat, slope, mean_dy));
  }
};

// Writes dx of a tile, and 0 in the rows left out. dx may be dy.
template <class Xhat, class Backward>
HWY_INLINE void write_centred_gradient_by(const Tile& tile, const Backward& in,
                                          const ResultRows& dx) {
  struct Constants {
    Xhat xhat;
    Floats scale, mean_dy, slope;
  };
  const auto at = [in](auto reader, std::size_t c) KEEL_LOOP_BODY {
    return Constants{Xhat{in.channels.at(reader, c)}, reader.load(in.scale + c),
                     reader.load(in.mean_dy + c), reader.load(in.slope + c)};
  };
  with_put(dx, [&](auto put) KEEL_LOOP_BODY {
    const auto body = [x = in.x, dy = in.dy, put](auto part, const Constants& k,
                                                  std::size_t i) KEEL_LOOP_BODY {
      const Floats xhat = k.xhat(part.load(x + i));
      put(part, Backward::dx(part.load(dy + i), xhat, k.scale, k.mean_dy, k.slope), i);
    };
    for_tile(tile, at, body, &dx);
  });
}
template <class Backward>
HWY_INLINE void write_centred_gradient(const Tile& tile, RowMask mask, const Backward& in,
                                       const ResultRows& dx) {
  any_far(in.channels.mean + tile.first, tile.channels)
      ? write_centred_gradient_by<FarStandardize>(tile, in, dx)
      : write_centred_gradient_by<Standardize>(tile, in, dx);
  clear_left_out(tile, mask, dx);
}

}  // namespace HWY_NAMESPACE
}  // namespace keel::onednn
HWY_AFTER_NAMESPACE();

#endif  // toggled guard
