// dgain and dbias of very wide rows, one range of columns at a time over all rows, since sums for
// each block of rows would take too much memory. Compiled once per instruction set.
#if defined(KEEL_BACKENDS_ONEDNN_SIMD_WIDE_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KEEL_BACKENDS_ONEDNN_SIMD_WIDE_ROWS_INL_H_
#undef KEEL_BACKENDS_ONEDNN_SIMD_WIDE_ROWS_INL_H_
#else
#define KEEL_BACKENDS_ONEDNN_SIMD_WIDE_ROWS_INL_H_
#endif

#include "backends/onednn/simd/column_strips-inl.h"

HWY_BEFORE_NAMESPACE();
namespace keel::onednn {
namespace HWY_NAMESPACE {

// x and dy (rows, width); xhat = (x - mean) * rstd - low. mean, rstd and low have one value a row;
// a null mean or low counts as 0.
template <class T>
struct WideRows {
  const T *x, *dy;
  const float *mean, *rstd, *low;
  std::size_t rows, width;

  HWY_INLINE Standardize xhat_of(std::size_t row) const {
    return {splat(mean ? mean[row] : 0), splat(rstd[row]), splat(low ? low[row] : 0)};
  }
};

// The required value of `low`: the mean over a row of xhat computed without it.
template <class T>
HWY_INLINE float mean_xhat(const WideRows<T>& in, std::size_t row) {
  const T* const x = in.x + row * in.width;
  const float mean = in.mean[row], rstd = in.rstd[row];
  ChainedSum sum;
  with_range({splat(mean), splat(rstd), zero()}, [&](const auto& of) KEEL_LOOP_BODY {
    for_runs(
        in.width,
        [&](auto part, std::size_t i, int chain) KEEL_LOOP_BODY {
          sum.add(chain, hn::Mul(part.only(of.off(part.load(x + i))), of.rstd));
        },
        [&]() KEEL_LOOP_BODY { sum.end_run(); });
  });
  return static_cast<float>(sum.total() / static_cast<double>(in.width));
}

// Sums of dy * xhat and of dy for the columns that are visited together.
struct ColumnRun {
  static constexpr std::size_t kColumns = 1024;
  HWY_ALIGN float sums[2][kColumns];
};

// Adds columns [first, first + n) of one row to the sums of dy * xhat and of dy.
template <class T>
HWY_INLINE void add_row(const WideRows<T>& in, std::size_t row, std::size_t first, std::size_t n,
                        ColumnRun& run) {
  const T* const x = in.x + row * in.width + first;
  const T* const dy = in.dy + row * in.width + first;
  with_range(in.xhat_of(row), [&](const auto& of_row) KEEL_LOOP_BODY {
    for_lanes(n, [&run, x, dy, xhat = of_row](auto part, std::size_t c) KEEL_LOOP_BODY {
      const Floats dy_c = part.load(dy + c);
      float *const dgain = run.sums[0] + c, *const dbias = run.sums[1] + c;
      Whole{}.store(hn::MulAdd(dy_c, xhat(part.load(x + c)), Whole{}.load(dgain)), dgain);
      Whole{}.store(hn::Add(Whole{}.load(dbias), dy_c), dbias);
    });
  });
}

// Computes columns [first, first + n) of dgain and dbias (width); either may be null. n is at
// most ColumnRun::kColumns.
template <class T>
HWY_INLINE void write_wide_sums(const WideRows<T>& in, std::size_t first, std::size_t n,
                                float* dgain, float* dbias) {
  constexpr std::size_t kColumns = ColumnRun::kColumns;
  HWY_ALIGN double totals[2][kColumns] = {};
  for (std::size_t row = 0; row < in.rows; row += Strip::kMostRows) {
    ColumnRun run = {};
    const std::size_t last = std::min(row + Strip::kMostRows, in.rows);
    for (std::size_t r = row; r < last; ++r) add_row(in, r, first, n, run);
    for_lanes(n, [&](auto, std::size_t c) KEEL_LOOP_BODY {
      for (std::size_t k : {0, 1}) {
        add_to(totals[k] + c, WideDoubles::of(Whole{}.load(run.sums[k] + c)));
      }
    });
  }
  for_lanes(n, [&](auto part, std::size_t c) KEEL_LOOP_BODY {
    if (dgain) part.store(WideDoubles::load(totals[0] + c).floats(), dgain + first + c);
    if (dbias) part.store(WideDoubles::load(totals[1] + c).floats(), dbias + first + c);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace keel::onednn
HWY_AFTER_NAMESPACE();

#endif  // toggled guard
