// The backward of row norms that have a gain and a bias, compiled once per instruction set. A Norm
// has, for rows of T,
//     gain                          (width), or null for 1
//     gradient<T>(b, row, width)    xhat(x) and dx(g, xhat) of one row, for write_gradients
#if defined(KEEL_BACKENDS_ONEDNN_SIMD_AFFINE_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KEEL_BACKENDS_ONEDNN_SIMD_AFFINE_ROWS_INL_H_
#undef KEEL_BACKENDS_ONEDNN_SIMD_AFFINE_ROWS_INL_H_
#else
#define KEEL_BACKENDS_ONEDNN_SIMD_AFFINE_ROWS_INL_H_
#endif

#include <optional>
#include <utility>

#include "backends/onednn/kernels/norm/affine_rows.h"
#include "backends/onednn/simd/column_sums-inl.h"
#include "backends/onednn/simd/row_gradient-inl.h"
#include "backends/onednn/simd/wide_rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace keel::onednn {
namespace HWY_NAMESPACE {

// Writes dx of kRows rows from `row` on and adds their share of dgain and dbias to the sums.
template <class T, std::size_t kRows, class Norm>
void affine_rows(const Binding& b, const Norm& norm, std::size_t row, std::size_t width,
                 BlockSums* sums) {
  const ResultRows dx(b, width);
  const GradientRows<T> rows =
      gradient_rows(b.inputs[Norm::In::kX].template as<T>(),
                    b.inputs[Norm::In::kDy].template as<T>(), dx, row * width, width);
  const auto gradient_of = [&](std::size_t r) HWY_ATTR {
    dx.prefetch(r * width, width);
    return norm.template gradient<T>(b, r, width);
  };
  [&]<std::size_t... kRow>(std::index_sequence<kRow...>) HWY_ATTR {
    // Braces keep the order of the rows, which the prefetcher of the processor relies on.
    const decltype(gradient_of(row)) of_row[] = {gradient_of(row + kRow)...};
    write_gradients(rows, {norm.gain, nullptr}, sums, of_row[kRow]...);
  }
  (std::make_index_sequence<kRows>());
}

// Writes dx of a block of rows and leaves its sums in the workspace.
template <class Norm>
void affine_block(const Binding& b, const Norm& norm, const AffineBlock& of) {
  const bool has_sums = of.plan.has_sums && !of.plan.is_wide;
  std::optional<BlockSums> sums;
  if (has_sums) sums.emplace(of.plan.sums, b.workspace, of.block);
  const auto write = [&]<class T>(T) HWY_ATTR {
    with_neighbours(
        b, of.neighbours, of.rows, [&](const Binding& shown, const RowRange& part) HWY_ATTR {
          for_row_groups(part, [&](auto rows, std::size_t row) HWY_ATTR {
            affine_rows<T, rows()>(shown, norm, row, part.width, has_sums ? &*sums : nullptr);
          });
        });
  };
  with_elements(b.inputs[Norm::In::kX], write);
  if (has_sums) sums->end_run();
}

// Adds the sums of all blocks up to dgain and dbias (width), of which either may be absent.
inline void add_affine_sums(const Binding& b, const AffineRows& plan) {
  for (const auto kind : {AffineRows::kGain, AffineRows::kBias}) {
    const TensorRef& out = AffineRows::out(b, kind);
    if (out) sum_over_blocks(plan.sums, b.workspace, kind, out.as<float>(), plan.width());
  }
}

// Writes dgain and dbias of wide rows, of which `in` has the statistics.
template <class T>
void add_wide_sums(const Binding& b, const WideRows<T>& in) {
  run_columns_of_rows(in.width, [&](std::size_t first, std::size_t n) HWY_ATTR {
    write_wide_sums(in, first, n, AffineRows::out(b, AffineRows::kGain).as<float>(),
                    AffineRows::out(b, AffineRows::kBias).as<float>());
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace keel::onednn
HWY_AFTER_NAMESPACE();

#endif  // toggled guard
