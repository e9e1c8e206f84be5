// The forward of centred row norms without parameters, compiled once per instruction set.
#if defined(KEEL_BACKENDS_ONEDNN_SIMD_CENTRED_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KEEL_BACKENDS_ONEDNN_SIMD_CENTRED_ROWS_INL_H_
#undef KEEL_BACKENDS_ONEDNN_SIMD_CENTRED_ROWS_INL_H_
#else
#define KEEL_BACKENDS_ONEDNN_SIMD_CENTRED_ROWS_INL_H_
#endif

#include "backends/onednn/kernels/norm/statistic.h"
#include "backends/onednn/simd/row_norm-inl.h"
#include "src/runtime/backend.h"

HWY_BEFORE_NAMESPACE();
namespace keel::onednn {
namespace HWY_NAMESPACE {

// kRows rows from `row` on of a node (x, ...) -> (y, mean, rstd): y = finish(xhat).
template <std::size_t kRows, class Finish>
HWY_INLINE void write_centred_rows(const Binding& b, const NormStatistic& statistic,
                                   std::size_t row, std::size_t width, const Finish& finish) {
  const double count = variance_count(statistic, std::int64_t(width));
  const float* x = b.inputs[0].as<float>() + row * width;
  const ResultRows y(b.outputs[0], width);
  float* means = b.outputs[1].as<float>() + row;
  float* rstds = b.outputs[2].as<float>() + row;
  float centres[kRows];
  double low[kRows];
  for (std::size_t k = 0; k < kRows; ++k) centres[k] = row_centre(x + k * width, width);
  for (std::size_t k = 0; k < kRows; ++k) {
    y.prefetch((row + k) * width, width);
    const RowMoments moments = row_moments(x + k * width, width, centres[k]);
    means[k] = float(moments.mean);
    low[k] = moments.mean - means[k];
    rstds[k] = float(rstd_of(statistic, moments.sum_of_squares / count));
  }
  for (std::size_t k = 0; k < kRows; ++k, x += width) {
    prefetch_row(x + kRows * width, width);
    const Standardize xhat = standardize_row(means[k], low[k], rstds[k]);
    for_lanes(width, [&, at = (row + k) * width](auto part, std::size_t i)
                         KEEL_LOOP_BODY { y.put(part, finish(xhat(part.load(x + i))), at + i); });
  }
}

// The same for a range of rows.
template <class Finish>
HWY_INLINE void write_centred(const Binding& b, const NormStatistic& statistic,
                              const RowRange& range, const Finish& finish) {
  for_row_groups(range, [&](auto rows, std::size_t row) HWY_ATTR {
    write_centred_rows<rows()>(b, statistic, row, range.width, finish);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace keel::onednn
HWY_AFTER_NAMESPACE();

#endif  // toggled guard
