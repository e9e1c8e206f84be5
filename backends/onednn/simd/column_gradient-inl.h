// Parts of the backward of column norms, compiled once per instruction set: the sums of a slab that
// a channel's gradient needs.
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

// Sums over some rows of xhat, of dy and of dy * xhat, a channel; padded to whole registers.
struct ChannelSums {
  double *xhat, *dy, *dy_xhat;
};

// What a backward is given: tensors x and dy, and the saved mean and rstd (channels).
struct SavedChannels {
  const float *x, *dy, *mean, *rstd;
};

// Adds the columns of a strip; `saved` holds whole tensors and, of mean and rstd, these channels.
HWY_INLINE void add_strip(const Strip& strip, std::size_t channels, const SavedChannels& saved,
                          const ChannelSums& sums) {
  for_column_ranges(channels, [&](std::size_t first, std::size_t n) HWY_ATTR {
    enum { kXhat, kDy, kDyXhat };
    ColumnRun<3> run;
    sum_strip(strip, n, run,
              [x = saved.x + first, dys = saved.dy + first, means = saved.mean + first,
               rstds = saved.rstd + first](auto part, std::size_t i, std::size_t c, Floats(&to)[3])
                  KEEL_LOOP_BODY {
                    const Floats deviation = hn::Sub(part.load(x + i), part.load(means + c));
                    const Floats xhat = hn::Mul(deviation, part.load(rstds + c));
                    const Floats dy = part.load(dys + i);
                    to[kXhat] = hn::Add(to[kXhat], xhat);
                    to[kDy] = hn::Add(to[kDy], dy);
                    to[kDyXhat] = hn::MulAdd(dy, xhat, to[kDyXhat]);
                  });
    double* const totals[] = {sums.xhat + first, sums.dy + first, sums.dy_xhat + first};
    for_lanes(n, [&](auto, std::size_t c) KEEL_LOOP_BODY {
      for (std::size_t k : {kXhat, kDy, kDyXhat}) {
        add_to(totals[k] + c, WideDoubles::of(Whole{}.load(run.sums[k] + c)));
      }
    });
  });
}

// Adds channel c of the row of spans at `row`.
HWY_INLINE void add_span(const SavedChannels& saved, const Slab& slab, std::size_t row,
                         std::size_t c, const ChannelSums& sums) {
  const std::size_t first = row + c * slab.inner;
  const RowSums span =
      row_sums({saved.x + first, saved.dy + first, saved.mean[c], saved.rstd[c], slab.inner},
               {nullptr, nullptr});
  sums.xhat[c] += span.xhat;
  sums.dy[c] += span.g;
  sums.dy_xhat[c] += span.g_xhat;
}

// The sums of a slab over the rows that are kept.
HWY_INLINE void slab_sums(const Slab& slab, RowMask mask, const SavedChannels& saved,
                          const ChannelSums& sums) {
  for (double* sum : {sums.xhat, sums.dy, sums.dy_xhat}) std::fill_n(sum, slab.channels, 0.0);
  const SavedChannels from_first{saved.x, saved.dy, saved.mean + slab.first,
                                 saved.rstd + slab.first};
  for_strips(slab, mask, [&](const Strip& strip) HWY_ATTR {
    if (slab.inner == 1) return add_strip(strip, slab.channels, from_first, sums);
    for (std::size_t row = 0; row < strip.rows; ++row) {
      for (std::size_t c = 0; c < slab.channels; ++c) {
        add_span(from_first, slab, strip.offsets[row], c, sums);
      }
    }
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace keel::onednn
HWY_AFTER_NAMESPACE();

#endif  // toggled guard
