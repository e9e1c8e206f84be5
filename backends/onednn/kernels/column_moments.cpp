// The statistics of column norms, made of the same parts as the norms themselves, and the merge of
// the statistics of several shards.
#include "src/ops/column_moments.h"

#include "backends/onednn/column_plan.h"
#include "backends/onednn/kernels/kernels.h"

#ifndef KEEL_COLUMN_MOMENTS_PLAN  // this file is compiled once per instruction set
#define KEEL_COLUMN_MOMENTS_PLAN
namespace keel::onednn {
namespace {

using In = ColumnMomentsInput;

RowMask mask_of(const Binding& b) { return b.inputs[In::kMask].as<std::uint8_t>(); }
double* row_of(const Binding& b, int row) {
  return b.outputs[0].as<double>() + row * b.outputs[0].type.shape[1];
}

void write_counts(const Binding& b, const ColumnPlan& plan, const Tile& tile) {
  const ColumnCounts counts = plan.counts(mask_of(b), {});
  std::fill_n(row_of(b, MomentRow::kCount) + tile.first, tile.channels, double(counts.kept));
  std::fill_n(row_of(b, MomentRow::kAll) + tile.first, tile.channels, double(counts.all));
}

}  // namespace
}  // namespace keel::onednn
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/onednn/kernels/column_moments.cpp"
#include <hwy/foreach_target.h>

#include "backends/onednn/simd/kept_rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace keel::onednn {
namespace HWY_NAMESPACE {
namespace {

template <class T>
void moments_of(const Binding& b, const ColumnPlan& plan) {
  plan.blocks.run([&](std::size_t block, const Tile& tile) HWY_ATTR {
    tile_moments(tile, mask_of(b), b.inputs[In::kX].as<T>(),
                 moments_at(plan, {b.workspace, block, 0}, tile.first));
  });
  plan.blocks.run_channels([&](const Tile& tile) HWY_ATTR {
    const ChannelMoments of = merged_moments(plan, mask_of(b), b.workspace, tile);
    write_counts(b, plan, tile);
    std::copy_n(of.mean, tile.channels, row_of(b, MomentRow::kMean) + tile.first);
    std::copy_n(of.squares, tile.channels, row_of(b, MomentRow::kSquares) + tile.first);
  });
}

template <class T>
void squares_of(const Binding& b, const ColumnPlan& plan) {
  const T* x = b.inputs[In::kX].as<T>();
  const auto sum = [&](std::size_t block, std::size_t kind)
                       HWY_ATTR { return plan.sum(b.workspace, block, kind); };
  plan.blocks.run([&](std::size_t block, const Tile& tile) HWY_ATTR {
    tile_squares(tile, x, mask_of(b), sum(block, 0) + tile.first);
    if (plan.sums > 1) tile_squares(tile, x, nullptr, sum(block, 1) + tile.first);
  });
  plan.blocks.run_channels([&](const Tile& tile) HWY_ATTR {
    write_counts(b, plan, tile);
    for (std::size_t kind = 0; kind < plan.sums; ++kind) {
      add_blocks(plan, sum(0, kind), tile, row_of(b, SquareRow::kSquares + int(kind)));
    }
  });
}

void moments(const Binding& b, const ColumnPlan& plan) {
  with_elements(b.inputs[In::kX], [&]<class T>(T) HWY_ATTR { moments_of<T>(b, plan); });
}
void squares(const Binding& b, const ColumnPlan& plan) {
  with_elements(b.inputs[In::kX], [&]<class T>(T) HWY_ATTR { squares_of<T>(b, plan); });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace keel::onednn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace keel::onednn {
namespace {

// Shards (kinds, channels) one after the other; a task has some channels.
template <class Body>
void for_channels(std::int64_t channels, const Body& body) {
  constexpr std::int64_t kRange = 256;
  parallel_blocks((channels + kRange - 1) / kRange, [&](std::int64_t task) {
    const std::int64_t last = std::min((task + 1) * kRange, channels);
    for (std::int64_t c = task * kRange; c < last; ++c) body(c);
  });
}

// As MergeWeights has it for blocks, with the number of elements of each channel.
void merge_moments(const Binding& b) {
  using Row = MomentRow;
  const Shape& parts = b.inputs[0].type.shape;
  for_channels(parts[2], [&](std::int64_t c) {
    double count = 0, all = 0, mean = 0, squares = 0;
    for (std::int64_t shard = 0; shard < parts[0]; ++shard) {
      const double* part = b.inputs[0].as<double>() + shard * parts[1] * parts[2] + c;
      const double more = part[Row::kCount * parts[2]];
      all += part[Row::kAll * parts[2]];
      if (more == 0) continue;
      const double share = more / (count + more), d = part[Row::kMean * parts[2]] - mean;
      squares += part[Row::kSquares * parts[2]] + d * d * (count * share);
      mean += d * share;
      count += more;
    }
    row_of(b, Row::kCount)[c] = count;
    row_of(b, Row::kAll)[c] = all;
    row_of(b, Row::kMean)[c] = mean;
    row_of(b, Row::kSquares)[c] = squares;
  });
}

void merge_sums(const Binding& b) {
  const Shape& parts = b.inputs[0].type.shape;
  const std::int64_t n = parts[1] * parts[2];
  for_channels(n, [&](std::int64_t i) {
    const double* part = b.inputs[0].as<double>() + i;
    double sum = *part;
    for (std::int64_t shard = 1; shard < parts[0]; ++shard) sum += part[shard * n];
    b.outputs[0].as<double>()[i] = sum;
  });
}

}  // namespace

HWY_EXPORT(moments);
HWY_EXPORT(squares);

Prepared prepare_column_moments(const NodeContext& context) {
  const ColumnPlan plan{column_blocks(column_sizes(context.input(In::kX).shape), 1, 2), 2, 0};
  return kernel_of(
      [=](const Binding& b) {
        HWY_DYNAMIC_DISPATCH(moments)
        (b, plan);
      },
      plan.bytes());
}

Prepared prepare_column_squares(const NodeContext& context) {
  const std::int64_t kinds = context.attrs<ColumnSquaresAttrs>().all_rows ? 2 : 1;
  const ColumnPlan plan{column_blocks(column_sizes(context.input(In::kX).shape), 1, kinds),
                        std::size_t(kinds), 0};
  return kernel_of(
      [=](const Binding& b) {
        HWY_DYNAMIC_DISPATCH(squares)
        (b, plan);
      },
      plan.bytes());
}

Prepared prepare_merge_moments(const NodeContext&) { return kernel_of(merge_moments); }
Prepared prepare_merge_sums(const NodeContext&) { return kernel_of(merge_sums); }

}  // namespace keel::onednn
#endif
