// Parts of the backward of centred row norms, compiled once per instruction set: the sums of a row,
// the gradient that follows from them, and sums over rows kept in double.
#if defined(KEEL_BACKENDS_ONEDNN_SIMD_ROW_GRADIENT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KEEL_BACKENDS_ONEDNN_SIMD_ROW_GRADIENT_INL_H_
#undef KEEL_BACKENDS_ONEDNN_SIMD_ROW_GRADIENT_INL_H_
#else
#define KEEL_BACKENDS_ONEDNN_SIMD_ROW_GRADIENT_INL_H_
#endif

#include "backends/onednn/simd/row_norm-inl.h"

HWY_BEFORE_NAMESPACE();
namespace keel::onednn {
namespace HWY_NAMESPACE {

// dx = rstd * (g - mean_g - xhat * slope) of one row.
struct RowGradient {
  Standardize xhat;
  Floats mean_g, slope;

  HWY_INLINE Floats dx(Floats g, Floats xhat_of_x) const {
    return hn::Mul(xhat.rstd, hn::NegMulAdd(xhat_of_x, slope, hn::Sub(g, mean_g)));
  }
};

// A row as its backward sees it: x, dy (n) and the statistics that the forward saved.
struct SavedRow {
  const float *x, *dy;
  float mean, rstd;
  std::size_t n;
};

// Of one row, with g = dy * gain: low takes back the rounding error of the saved mean, and
// slope = slope_factor * mean(g * xhat).
HWY_INLINE RowGradient row_gradient(const SavedRow& row, const RowAffine& affine,
                                    double slope_factor) {
  ChainedSum xhats, gs, products;
  const Floats mean = splat(row.mean), rstd = splat(row.rstd);
  for_runs(
      row.n,
      [&](auto part, std::size_t i, int chain) HWY_ATTR {
        const Floats xhat = hn::Mul(part.only(hn::Sub(part.load(row.x + i), mean)), rstd);
        const Floats g = affine.scale(part, part.load(row.dy + i), i);
        xhats.add(chain, xhat);
        gs.add(chain, g);
        products.add_product(chain, g, xhat);
      },
      [&]() HWY_ATTR {
        xhats.end_run();
        gs.end_run();
        products.end_run();
      });
  const double count = static_cast<double>(row.n), low = xhats.total() / count;
  const double slope = slope_factor * (products.total() - low * gs.total()) / count;
  return {Standardize(row.mean, low / row.rstd, row.rstd),
          splat(static_cast<float>(gs.total() / count)), splat(static_cast<float>(slope))};
}

// sums[0 .. kLanes) += v
HWY_INLINE void add_to_sums(double* sums, Floats v) {
  const D d;
#if HWY_TARGET == HWY_SCALAR
  hn::StoreU(hn::Add(hn::LoadU(d, sums), hn::PromoteTo(d, v)), d, sums);
#else
  const NarrowF half;
  double* const upper = sums + hn::Lanes(d);
  hn::StoreU(hn::Add(hn::LoadU(d, sums), hn::PromoteTo(d, hn::LowerHalf(half, v))), d, sums);
  hn::StoreU(hn::Add(hn::LoadU(d, upper), hn::PromoteTo(d, hn::UpperHalf(half, v))), d, upper);
#endif
}

// Rows of sums, one a block, `stride` doubles apart.
struct BlockSums {
  const double* sums;
  std::size_t stride, blocks;
};

// out[i] = the sum of row i over the blocks, in their order.
HWY_INLINE void sum_blocks(const BlockSums& b, float* out, std::size_t n) {
  const D d;
  const NarrowF narrow;
  const std::size_t lanes = hn::Lanes(d);
  for (std::size_t i = 0; i < n; i += lanes) {
    Doubles total = hn::Zero(d);
    for (std::size_t block = 0; block < b.blocks; ++block) {
      total = hn::Add(total, hn::LoadU(d, b.sums + block * b.stride + i));
    }
    const auto rounded = hn::DemoteTo(narrow, total);
    i + lanes <= n ? hn::StoreU(rounded, narrow, out + i)
                   : hn::BlendedStore(rounded, hn::FirstN(narrow, n - i), narrow, out + i);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace keel::onednn
HWY_AFTER_NAMESPACE();

#endif  // toggled guard
