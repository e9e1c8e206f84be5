// The forward of centred row norms, compiled once per instruction set.
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

// The rows of a node whose outputs are those of CentredOutput.
struct CentredRows {
  const Binding& b;
  NormStatistic statistic;
  std::size_t width;
  ResultRows y;
};

// Saves mean and rstd of kRows rows from `row` on and calls write_row(row, xhat) for each, where
// xhat is a Standardize or a FarStandardize.
template <class T, std::size_t kRows, class WriteRow>
HWY_INLINE void standardize_rows(const CentredRows& of, std::size_t row,
                                 const WriteRow& write_row) {
  const std::size_t width = of.width;
  const double count = variance_count(std::int64_t(width), of.statistic.unbiased);
  const T* x = of.b.inputs[NormInput::kX].as<T>() + row * width;
  float* means = of.b.outputs[CentredOutput::kMean].as<float>() + row;
  float* rstds = of.b.outputs[CentredOutput::kRstd].as<float>() + row;
  float centres[kRows];
  double low[kRows], squares[kRows];
  for (std::size_t k = 0; k < kRows; ++k) centres[k] = row_centre(x + k * width, width);
  for (std::size_t k = 0; k < kRows; ++k) {
    of.y.prefetch((row + k) * width, width);
    const RowMoments moments = row_moments(x + k * width, width, centres[k]);
    means[k] = float(moments.mean);
    low[k] = moments.mean - means[k];
    squares[k] = moments.sum_of_squares;
  }
  for (std::size_t k = 0; k < kRows; ++k) {
    rstds[k] = float(rstd_of(of.statistic, squares[k] / count));
  }
  for (std::size_t k = 0; k < kRows; ++k, x += width) {
    of.y.prefetch_input(x + std::max(kRows * width, kAhead), width);
    with_range(standardize_row(means[k], low[k], rstds[k]),
               [&](const auto& xhat) KEEL_LOOP_BODY { write_row(row + k, xhat); });
  }
}
template <class T, class WriteRow>
HWY_INLINE void standardize_rows(const CentredRows& of, const RowRange& range,
                                 const WriteRow& write_row) {
  for_row_groups(range, [&](auto rows, std::size_t row)
                            HWY_ATTR { standardize_rows<T, rows()>(of, row, write_row); });
}

// Writes a range of rows of y = finish(xhat, part, i), i being the place of a register in its row.
template <class T, class Finish>
HWY_INLINE void write_centred(const Binding& b, const NormStatistic& statistic,
                              const RowRange& range, const Finish& finish) {
  const CentredRows rows{b, statistic, range.width, ResultRows(b, range.width)};
  const T* const x = b.inputs[NormInput::kX].as<T>();
  standardize_rows<T>(rows, range, [&](std::size_t row, const auto& xhat) KEEL_LOOP_BODY {
    const std::size_t at = row * range.width;
    write_row(rows.y, at, range.width, [=, &finish](auto part, std::size_t i) KEEL_LOOP_BODY {
      return finish(xhat(part.load(x + at + i)), part, i);
    });
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace keel::onednn
HWY_AFTER_NAMESPACE();

#endif  // toggled guard
