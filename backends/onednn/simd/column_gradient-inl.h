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

HWY_INLINE void add_to(double* sums, const Floats (&chains)[kChains]) {
  (WideDoubles::load(sums) + WideDoubles::of(sum_of_chains(chains))).store(sums);
}

// Adds a register's worth of columns over a few rows.
template <class Part>
HWY_INLINE void add_strip(Part part, const SavedChannels& saved, const Slab& slab, std::size_t c,
                          const ChannelSums& sums) {
  const Standardize standardize{part.load(saved.mean + c), part.load(saved.rstd + c), zero()};
  Floats xhats[kChains] = {zero(), zero(), zero(), zero()};
  Floats dys[kChains] = {zero(), zero(), zero(), zero()};
  Floats products[kChains] = {zero(), zero(), zero(), zero()};
  const float *x = saved.x + slab.offset + c, *dy = saved.dy + slab.offset + c;
  for_rows_in_turn(slab.rows, [&](std::size_t row, int chain) HWY_ATTR {
    const Floats xhat = standardize(part.load(x + row * slab.stride));
    const Floats dy_row = part.load(dy + row * slab.stride);
    xhats[chain] = hn::Add(xhats[chain], xhat);
    dys[chain] = hn::Add(dys[chain], dy_row);
    products[chain] = hn::MulAdd(dy_row, xhat, products[chain]);
  });
  add_to(sums.xhat + c, xhats);
  add_to(sums.dy + c, dys);
  add_to(sums.dy_xhat + c, products);
}

// Adds channel c of one row of spans.
HWY_INLINE void add_span(const SavedChannels& saved, const Slab& slab, std::size_t c,
                         const ChannelSums& sums) {
  const std::size_t first = slab.offset + c * slab.inner;
  const RowSums span =
      row_sums({saved.x + first, saved.dy + first, saved.mean[c], saved.rstd[c], slab.inner},
               {nullptr, nullptr});
  sums.xhat[c] += span.xhat;
  sums.dy[c] += span.g;
  sums.dy_xhat[c] += span.g_xhat;
}

// The sums of a slab.
HWY_INLINE void slab_sums(const Slab& whole, const SavedChannels& saved, const ChannelSums& sums) {
  for (double* sum : {sums.xhat, sums.dy, sums.dy_xhat}) std::fill_n(sum, whole.channels, 0.0);
  const SavedChannels from_first{saved.x, saved.dy, saved.mean + whole.first,
                                 saved.rstd + whole.first};
  const std::size_t step = whole.inner == 1 ? strip_rows(whole.channels) : 1;
  Slab slab = whole;
  for (std::size_t row = 0; row < whole.rows; row += step, slab.offset += step * whole.stride) {
    slab.rows = std::min(step, whole.rows - row);
    if (slab.inner == 1) {
      for_lanes(slab.channels, [&](auto part, std::size_t c)
                                   HWY_ATTR { add_strip(part, from_first, slab, c, sums); });
    } else {
      for (std::size_t c = 0; c < slab.channels; ++c) add_span(from_first, slab, c, sums);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace keel::onednn
HWY_AFTER_NAMESPACE();

#endif  // toggled guard
