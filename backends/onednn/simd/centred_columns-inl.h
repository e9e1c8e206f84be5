// The final passes of the norms over columns that subtract a mean, compiled once per instruction
// set: y and dx of a slab from constants of its channels, and the rows that a mask leaves out.
#if defined(KEEL_BACKENDS_ONEDNN_SIMD_CENTRED_COLUMNS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KEEL_BACKENDS_ONEDNN_SIMD_CENTRED_COLUMNS_INL_H_
#undef KEEL_BACKENDS_ONEDNN_SIMD_CENTRED_COLUMNS_INL_H_
#else
#define KEEL_BACKENDS_ONEDNN_SIMD_CENTRED_COLUMNS_INL_H_
#endif

#include "backends/onednn/simd/kept_rows-inl.h"
#include "backends/onednn/streaming.h"

HWY_BEFORE_NAMESPACE();
namespace keel::onednn {
namespace HWY_NAMESPACE {

// The arrays (channels) of xhat = (x - mean) * rstd - low, low being what the float mean lacks.
struct CentredChannels {
  const float *mean, *rstd, *low;

  template <class Reader>
  HWY_INLINE Standardize at(const Reader& reader, std::size_t c) const {
    return {reader.load(mean + c), reader.load(rstd + c), reader.load(low + c)};
  }
};

// y = xhat * gain + shift; gain and shift (channels) each null or not.
struct CentredForward {
  CentredChannels channels;
  const float *x, *gain, *shift;
};

// Writes the rows of a slab that are kept to y, a whole tensor.
HWY_INLINE void write_centred(const Slab& slab, RowMask mask, const CentredForward& in,
                              const TensorRef& y) {
  struct Constants {
    Standardize xhat;
    Floats gain, shift;
  };
  const auto at = [&](auto reader, std::size_t c) HWY_ATTR {
    return Constants{in.channels.at(reader, c), in.gain ? reader.load(in.gain + c) : splat(1),
                     in.shift ? reader.load(in.shift + c) : zero()};
  };
  const auto body = [x = in.x, to = y.as<float>(), stride = slab.stride,
                     streamed = is_streamed(y, slab.stride)](auto part, const Constants& k,
                                                             auto rows, std::size_t i) HWY_ATTR {
    Floats v[rows()];
    for (std::size_t row = 0; row < rows(); ++row) v[row] = part.load(x + i + row * stride);
    for (std::size_t row = 0; row < rows(); ++row) {
      write(part, hn::MulAdd(k.xhat(v[row]), k.gain, k.shift), to + i + row * stride, streamed);
    }
  };
  for_kept_runs(slab, mask, [&](const Slab& run) HWY_ATTR { for_slab(run, at, body); });
}

// dx = scale * (dy - mean_dy - xhat * slope); all but x and dy (channels).
struct CentredBackward {
  CentredChannels channels;
  const float *x, *dy, *scale, *mean_dy, *slope;
};

// Writes dx of a slab, 0 to the rows left out. dx may be dy.
HWY_INLINE void write_centred_gradient(const Slab& slab, RowMask mask, const CentredBackward& in,
                                       const TensorRef& dx) {
  struct Constants {
    Standardize xhat;
    Floats scale, mean_dy, slope;
  };
  const auto at = [&](auto reader, std::size_t c) HWY_ATTR {
    return Constants{in.channels.at(reader, c), reader.load(in.scale + c),
                     reader.load(in.mean_dy + c), reader.load(in.slope + c)};
  };
  const auto body = [x = in.x, dy = in.dy, to = dx.as<float>(), stride = slab.stride,
                     streamed = is_streamed(dx, slab.stride)](auto part, const Constants& k,
                                                              auto rows, std::size_t i) HWY_ATTR {
    Floats v[rows()];
    for (std::size_t row = 0; row < rows(); ++row) {
      const std::size_t e = i + row * stride;
      const Floats g = hn::Sub(part.load(dy + e), k.mean_dy);
      v[row] = hn::Mul(k.scale, hn::NegMulAdd(k.xhat(part.load(x + e)), k.slope, g));
    }
    for (std::size_t row = 0; row < rows(); ++row) {
      write(part, v[row], to + i + row * stride, streamed);
    }
  };
  for_kept_runs(slab, mask, [&](const Slab& run) HWY_ATTR { for_slab(run, at, body); });
  clear_left_out(slab, mask, dx.as<float>());
}

}  // namespace HWY_NAMESPACE
}  // namespace keel::onednn
HWY_AFTER_NAMESPACE();

#endif  // toggled guard
