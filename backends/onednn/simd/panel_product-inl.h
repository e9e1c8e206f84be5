// Products with a second factor that is packed in panels of two registers of columns, compiled once
// per instruction set; panels of bf16 have as many columns as the widest. A panel is contiguous, so
// long columns meet in no set of the cache. Each product runs on one thread; callers cut the work
// into blocks only by sizes.
#if defined(KEEL_BACKENDS_ONEDNN_SIMD_PANEL_PRODUCT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KEEL_BACKENDS_ONEDNN_SIMD_PANEL_PRODUCT_INL_H_
#undef KEEL_BACKENDS_ONEDNN_SIMD_PANEL_PRODUCT_INL_H_
#else
#define KEEL_BACKENDS_ONEDNN_SIMD_PANEL_PRODUCT_INL_H_
#endif

#include <algorithm>

#include "backends/onednn/panels.h"
#include "backends/onednn/simd/bf16-inl.h"
#include "backends/onednn/simd/small_product-inl.h"

HWY_BEFORE_NAMESPACE();
namespace keel::onednn {
namespace HWY_NAMESPACE {

inline constexpr std::size_t kPanel = 2 * kLanes;
static_assert(kPanel <= kWidestPanel);

template <class T>
inline constexpr std::size_t kPanelOf = std::is_same_v<T, BF16> ? kWidestPanel : kPanel;

template <class T = float>
constexpr std::size_t panels_of(std::size_t columns) {
  return (columns + kPanelOf<T> - 1) / kPanelOf<T>;
}

// Packs panel number `panel` of the matrix (terms, columns) whose row t is at row_of(t).
template <class RowOf>
HWY_INLINE void pack_rows(std::size_t panel, std::size_t terms, std::size_t columns, float* panels,
                          const RowOf& row_of) {
  const std::size_t first = panel * kPanel, count = std::min(kPanel, columns - first);
  float* to = panels + first * terms;
  for (std::size_t t = 0; t < terms; ++t, to += kPanel) {
    std::copy_n(row_of(t) + first, count, to);
    std::fill_n(to + count, kPanel - count, 0.0f);
  }
}

// The same of the matrix whose column c is at column_of(c).
template <class ColumnOf>
HWY_INLINE void pack_columns(std::size_t panel, std::size_t terms, std::size_t columns,
                             float* panels, const ColumnOf& column_of) {
  const std::size_t first = panel * kPanel, count = std::min(kPanel, columns - first);
  float* const to = panels + first * terms;
  if (count < kPanel) std::fill_n(to, terms * kPanel, 0.0f);
  for (std::size_t c = 0; c < count; ++c) {
    const float* const from = column_of(first + c);
    for (std::size_t t = 0; t < terms; ++t) to[t * kPanel + c] = from[t];
  }
}

// The same of bf16. Nothing is written to columns after the last.
template <class RowOf>
HWY_INLINE void pack_rows(std::size_t panel, std::size_t terms, std::size_t columns, Pair* panels,
                          const RowOf& row_of) {
  const std::size_t first = panel * kWidestPanel, count = std::min(kWidestPanel, columns - first);
  Pair* to = panels + first * pairs_of(terms);
  for (std::size_t t = 0; t < terms; t += 2, to += kWidestPanel) {
    const auto* const row = row_of(t) + first;
    join_rows(row, t + 1 < terms ? row_of(t + 1) + first : nullptr, count, to);
  }
}

template <class ColumnOf>
HWY_INLINE void pack_columns(std::size_t panel, std::size_t terms, std::size_t columns,
                             Pair* panels, const ColumnOf& column_of) {
  const std::size_t first = panel * kWidestPanel, count = std::min(kWidestPanel, columns - first);
  Pair* const to = panels + first * pairs_of(terms);
  for (std::size_t c = 0; c < count; c += 4) {
    const BF16* from[4];
    const std::size_t some = std::min<std::size_t>(4, count - c);
    for (std::size_t i = 0; i < some; ++i) from[i] = column_of(first + c + i);
    turn_pairs(from, some, terms, {to + c, kWidestPanel});
  }
}

// c = a b, or c + a b, for the columns of some panels of b.
template <class T>
struct PanelProduct {
  std::size_t rows, terms;
  std::size_t first, columns;  // the first column is that of a panel
  StridedOf<T> a;              // (rows, terms); rows of bf16 are contiguous
  const Packed<T>* panels;     // of b, each of `packed` terms
  std::size_t packed;
  Rows<float> c;  // all columns of it
  bool adds;
};

HWY_INLINE void multiply_panels(const PanelProduct<BF16>& p, MultiplyNarrow multiply_narrow) {
  for (std::size_t j = p.first; j < p.first + p.columns; j += kWidestPanel) {
    multiply_narrow({p.rows, p.terms, std::min(kWidestPanel, p.first + p.columns - j), p.a.at,
                     p.a.row, p.panels + j * pairs_of(p.packed), kWidestPanel, p.c.at + j, p.c.row,
                     p.adds});
  }
}

HWY_INLINE void multiply_panels(const PanelProduct<float>& p, MultiplyNarrow = nullptr) {
  static constexpr float kUnscaled = 1;
  for (std::size_t j = p.first; j < p.first + p.columns; j += kPanel) {
    multiply({p.rows,
              p.terms,
              std::min(kPanel, p.first + p.columns - j),
              p.a,
              {p.panels + j * p.packed, kPanel},
              {p.c.at + j, p.c.row},
              {&kUnscaled, 0},
              p.adds});
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace keel::onednn
HWY_AFTER_NAMESPACE();

#endif  // toggled guard
