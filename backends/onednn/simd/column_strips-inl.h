// Sums down the columns of a tensor of tokens, compiled once per instruction set: rows are read one
// after the other, as the prefetcher likes them, while short runs of sums wait in L1.
#if defined(KEEL_BACKENDS_ONEDNN_SIMD_COLUMN_STRIPS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KEEL_BACKENDS_ONEDNN_SIMD_COLUMN_STRIPS_INL_H_
#undef KEEL_BACKENDS_ONEDNN_SIMD_COLUMN_STRIPS_INL_H_
#else
#define KEEL_BACKENDS_ONEDNN_SIMD_COLUMN_STRIPS_INL_H_
#endif

#include <array>
#include <utility>

#include "backends/onednn/column_plan.h"
#include "backends/onednn/simd/row_norm-inl.h"
#include "backends/onednn/simd/wide_doubles-inl.h"

HWY_BEFORE_NAMESPACE();
namespace keel::onednn {
namespace HWY_NAMESPACE {

// Some rows of a slab that are taken together, without those left out by a mask; each is the offset
// of its first element. Their sums may be kept in float, so they are few.
struct Strip {
  static constexpr std::size_t kMostRows = 64;
  std::size_t rows = 0, offsets[kMostRows];
};

HWY_INLINE bool is_kept(RowMask mask, std::size_t row) { return mask == nullptr || mask[row] != 0; }

// Calls body(strip) for strips that cover the kept rows of a slab; the first has `first` rows.
template <class Body>
HWY_INLINE void for_strips(const Slab& slab, RowMask mask, std::size_t first, const Body& body) {
  const std::size_t before = slab.offset / slab.stride;
  Strip strip;
  std::size_t most = first;
  for (std::size_t row = 0; row < slab.rows; ++row) {
    if (!is_kept(mask, before + row)) continue;
    strip.offsets[strip.rows++] = slab.offset + row * slab.stride;
    if (strip.rows < most) continue;
    body(strip);
    strip.rows = 0;
    most = Strip::kMostRows;
  }
  if (strip.rows > 0) body(strip);
}

template <class Body>
HWY_INLINE void for_strips(const Slab& slab, RowMask mask, const Body& body) {
  for_strips(slab, mask, Strip::kMostRows, body);
}

// Sums, `kKinds` a column, of the columns that are visited together.
template <std::size_t kKinds>
struct ColumnRun {
  static constexpr std::size_t kColumns = 1024;
  HWY_ALIGN float sums[kKinds][kColumns];
};

// Calls body(first, n) for ranges of columns that a ColumnRun has room for.
template <class Body>
HWY_INLINE void for_column_ranges(std::size_t columns, const Body& body) {
  constexpr std::size_t kColumns = ColumnRun<1>::kColumns;
  for (std::size_t first = 0; first < columns; first += kColumns) {
    body(first, std::min(kColumns, columns - first));
  }
}

// The sums over kRows rows of a register's worth of columns, from column c on.
template <std::size_t kKinds, std::size_t kRows, class Part, class Add>
HWY_INLINE void sum_rows(Part part, const std::array<std::size_t, kRows>& rows, std::size_t c,
                         Add add, Floats (&sums)[kKinds]) {
  for (Floats& sum : sums) sum = zero();
  [&]<std::size_t... kRow>(std::index_sequence<kRow...>) KEEL_LOOP_BODY {
    (add(part, rows[kRow] + c, c, sums), ...);
  }
  (std::make_index_sequence<kRows>());
}

// Adds the sums over kRows rows to those of a run, or begins a run.
template <std::size_t kKinds, std::size_t kRows, class Add>
HWY_INLINE void add_rows(const std::size_t* offsets, std::size_t columns, bool begins,
                         ColumnRun<kKinds>& run, Add add) {
  std::array<std::size_t, kRows> rows;
  std::copy_n(offsets, kRows, rows.begin());
  for_lanes(columns, [&run, rows, begins, add](auto part, std::size_t c) KEEL_LOOP_BODY {
    Floats sums[kKinds];
    sum_rows(part, rows, c, add, sums);
    for (std::size_t k = 0; k < kKinds; ++k) {
      float* const to = run.sums[k] + c;
      Whole{}.store(begins ? sums[k] : hn::Add(Whole{}.load(to), sums[k]), to);
    }
  });
}

// The sums of `columns` columns over a strip: add(part, i, c, sums) adds the terms of the register
// at element i, of columns c, c + 1, ..., to sums[kKinds].
template <std::size_t kKinds, class Add>
HWY_INLINE void sum_strip(const Strip& strip, std::size_t columns, ColumnRun<kKinds>& run,
                          Add add) {
  constexpr std::size_t kGroup = 8;
  std::size_t row = 0;
  for (; row + kGroup <= strip.rows; row += kGroup) {
    add_rows<kKinds, kGroup>(strip.offsets + row, columns, row == 0, run, add);
  }
  for (; row < strip.rows; ++row) {
    add_rows<kKinds, 1>(strip.offsets + row, columns, row == 0, run, add);
  }
}

HWY_INLINE void add_to(double* sums, const WideDoubles& more) {
  (WideDoubles::load(sums) + more).store(sums);
}

// Whether a sum of squares has neither overflowed nor lost elements to underflow.
HWY_INLINE hn::Mask<F> in_range(Floats squares) {
  return hn::And(hn::Gt(squares, splat(static_cast<float>(kLeastSquares))),
                 hn::Lt(squares, splat(std::numeric_limits<float>::infinity())));
}

// Whether a condition holds for all columns of a register.
template <class Part>
HWY_INLINE bool holds_for_all(Part part, hn::Mask<F> condition) {
  return hn::AllTrue(F(), hn::Eq(part.only(hn::IfThenZeroElse(condition, splat(1))), zero()));
}

}  // namespace HWY_NAMESPACE
}  // namespace keel::onednn
HWY_AFTER_NAMESPACE();

#endif  // toggled guard
