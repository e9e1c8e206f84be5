// The sums for the backwards of column norms, made of the same parts as these backwards.
#include "src/ops/column_gradient_sums.h"

#include "backends/onednn/column_plan.h"
#include "backends/onednn/kernels/kernels.h"

#ifndef KEEL_COLUMN_GRADIENT_PLAN  // this file is compiled once per instruction set
#define KEEL_COLUMN_GRADIENT_PLAN
namespace keel::onednn {
namespace {

using CentredIn = CentredSumsInput;
using UncentredIn = UncentredSumsInput;

constexpr std::size_t kAllDyXhat = 3;  // a kind of sums in a workspace

double* row_of(const Binding& b, int row) {
  return b.outputs[0].as<double>() + row * b.outputs[0].type.shape[1];
}

void write_counts(const Binding& b, const ColumnPlan& plan, RowMask mask, const Tile& tile) {
  const ColumnCounts counts = plan.counts(mask, {});
  std::fill_n(row_of(b, MomentRow::kCount) + tile.first, tile.channels, double(counts.kept));
  std::fill_n(row_of(b, MomentRow::kAll) + tile.first, tile.channels, double(counts.all));
}

}  // namespace
}  // namespace keel::onednn
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/onednn/kernels/column_gradient_sums.cpp"
#include <hwy/foreach_target.h>

#include "backends/onednn/simd/kept_rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace keel::onednn {
namespace HWY_NAMESPACE {
namespace {

template <class T>
void centred_of(const Binding& b, const ColumnPlan& plan) {
  const RowMask mask = b.inputs[CentredIn::kMask].as<std::uint8_t>();
  const T* dy = b.inputs[CentredIn::kDy].as<T>();
  const bool has_padding = plan.sums > kPaddingDy;
  plan.blocks.run([&](std::size_t block, const Tile& tile) HWY_ATTR {
    tile_sums(tile, mask,
              SavedChannels<T>{b.inputs[CentredIn::kX].as<T>(), dy,
                               b.inputs[CentredIn::kMean].as<float>(),
                               b.inputs[CentredIn::kRstd].as<float>()},
              sums_at(plan, {b.workspace, block, 0}, tile.first));
    if (!has_padding) return;
    tile_left_out(tile, mask, dy, plan.sum(b.workspace, block, kPaddingDy) + tile.first);
  });
  plan.blocks.run_channels([&](const Tile& tile) HWY_ATTR {
    write_counts(b, plan, mask, tile);
    for (std::size_t kind = 0; kind < plan.sums; ++kind) {
      add_blocks(plan, plan.sum(b.workspace, 0, kind), tile,
                 row_of(b, CentredSumRow::kXhat + int(kind)));
    }
    if (has_padding || b.outputs[0].type.shape[0] == CentredSumRow::kPaddingDy) return;
    std::fill_n(row_of(b, CentredSumRow::kPaddingDy) + tile.first, tile.channels, 0.0);
  });
}

template <class T>
void uncentred_of(const Binding& b, const ColumnPlan& plan) {
  const RowMask mask = b.inputs[UncentredIn::kMask].as<std::uint8_t>();
  const UncentredGradient<T> in{b.inputs[UncentredIn::kX].as<T>(),
                                b.inputs[UncentredIn::kDy].as<T>(),
                                b.inputs[UncentredIn::kRstd].as<float>()};
  const bool all_rows = plan.sums > kAllDyXhat;
  const auto sum = [&](std::size_t block, std::size_t kind, const Tile& tile)
                       HWY_ATTR { return plan.sum(b.workspace, block, kind) + tile.first; };
  plan.blocks.run([&](std::size_t block, const Tile& tile) HWY_ATTR {
    tile_gradient_sums(tile, in, mask, {sum(block, 0, tile), sum(block, 1, tile)});
    if (!all_rows) return;
    tile_gradient_sums(tile, in, nullptr, {sum(block, 2, tile), sum(block, kAllDyXhat, tile)});
  });
  plan.blocks.run_channels([&](const Tile& tile) HWY_ATTR {
    const auto write = [&](UncentredSumRow::Place row, std::size_t kind) HWY_ATTR {
      add_blocks(plan, plan.sum(b.workspace, 0, kind), tile, row_of(b, row));
    };
    write_counts(b, plan, mask, tile);
    write(UncentredSumRow::kDy, 0);
    write(UncentredSumRow::kDyXhat, 1);
    if (all_rows) write(UncentredSumRow::kAllDyXhat, kAllDyXhat);
  });
}

void centred(const Binding& b, const ColumnPlan& plan) {
  with_elements(b.inputs[CentredIn::kX], [&]<class T>(T) HWY_ATTR { centred_of<T>(b, plan); });
}
void uncentred(const Binding& b, const ColumnPlan& plan) {
  with_elements(b.inputs[UncentredIn::kX], [&]<class T>(T) HWY_ATTR { uncentred_of<T>(b, plan); });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace keel::onednn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace keel::onednn {

HWY_EXPORT(centred);
HWY_EXPORT(uncentred);

Prepared prepare_centred_gradient_sums(const NodeContext& context) {
  const bool has_padding =
      context.has(CentredIn::kMask) && context.attrs<CentredSumsAttrs>().padding;
  const std::int64_t kinds = centred_sum_kinds(has_padding);
  const ColumnSizes sizes = column_sizes(context.input(CentredIn::kX).shape);
  const ColumnPlan plan{column_blocks(sizes, 2, kinds), std::size_t(kinds), 0};
  return kernel_of(
      [=](const Binding& b) {
        HWY_DYNAMIC_DISPATCH(centred)
        (b, plan);
      },
      plan.bytes());
}

Prepared prepare_uncentred_gradient_sums(const NodeContext& context) {
  const std::int64_t kinds = context.attrs<UncentredSumsAttrs>().all_rows ? 4 : 2;
  const ColumnSizes sizes = column_sizes(context.input(UncentredIn::kX).shape);
  const ColumnPlan plan{column_blocks(sizes, 2, kinds), std::size_t(kinds), 0};
  return kernel_of(
      [=](const Binding& b) {
        HWY_DYNAMIC_DISPATCH(uncentred)
        (b, plan);
      },
      plan.bytes());
}

}  // namespace keel::onednn
#endif
