// Layer norm: a row at a time, in passes over data that stays in L1.
#include "src/ops/norm/layer_norm.h"

#include <optional>
#include <utility>

#include "backends/onednn/column_sums.h"
#include "backends/onednn/kernels/kernels.h"
#include "backends/onednn/kernels/norm/statistic.h"
#include "backends/onednn/row_blocks.h"

#ifndef KEEL_LAYER_NORM_PLAN  // this file is compiled once per instruction set
#define KEEL_LAYER_NORM_PLAN
namespace keel::onednn {
namespace {

enum Sums : std::size_t { kGain, kBias, kSums };  // in the order of write_gradients

struct BackwardPlan {
  NormStatistic statistic;
  ColumnSums sums;
  bool is_wide;  // the workspace holds what xhat lacks of a float mean, for each row, not sums
};

}  // namespace
}  // namespace keel::onednn
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/onednn/kernels/norm/layer_norm.cpp"
#include <hwy/foreach_target.h>

#include "backends/onednn/simd/centred_rows-inl.h"
#include "backends/onednn/simd/column_sums-inl.h"
#include "backends/onednn/simd/row_gradient-inl.h"
#include "backends/onednn/simd/wide_rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace keel::onednn {
namespace HWY_NAMESPACE {
namespace {

// y = (x - mean) * rstd * gain + bias; mean and rstd are saved.
void forward(const Binding& b, const NormStatistic& statistic, const RowRange& range) {
  const RowAffine affine{b.inputs[1].as<float>(), b.inputs[2].as<float>()};
  write_centred(b, statistic, range, [&](Floats xhat, auto part, std::size_t i) KEEL_LOOP_BODY {
    return affine.apply(part, xhat, i);
  });
}

RowGradient gradient_of(const Binding& b, const NormStatistic& statistic, std::size_t row,
                        std::size_t width) {
  ResultRows(b, width).prefetch(row * width, width);
  const SavedRow saved{b.inputs[0].as<float>() + row * width, b.inputs[4].as<float>() + row * width,
                       b.inputs[2].as<float>()[row], b.inputs[3].as<float>()[row], width};
  const double count = variance_count(statistic, std::int64_t(width));
  return row_gradient(saved, {b.inputs[1].as<float>(), nullptr},
                      double(width) / count * slope_factor(statistic, saved.rstd));
}

// kRows rows from `row` on: dx, and their share of dgain and dbias.
template <std::size_t kRows>
void backward_rows(const Binding& b, const NormStatistic& statistic, std::size_t row,
                   std::size_t width, BlockSums* sums) {
  const GradientRows rows = gradient_rows(b.inputs[0].as<float>(), b.inputs[4].as<float>(),
                                          ResultRows(b, width), row * width, width);
  [&]<std::size_t... kRow>(std::index_sequence<kRow...>) HWY_ATTR {
    // Braces keep the order of the rows, which the prefetcher of the processor relies on.
    const RowGradient of_row[] = {gradient_of(b, statistic, row + kRow, width)...};
    write_gradients(rows, {b.inputs[1].as<float>(), nullptr}, sums, of_row[kRow]...);
  }
  (std::make_index_sequence<kRows>());
}

void backward(const Binding& b, const BackwardPlan& plan, std::size_t block,
              const RowRange& range) {
  const bool has_sums = !plan.is_wide && (b.outputs[kGain + 1] || b.outputs[kBias + 1]);
  std::optional<BlockSums> sums;
  if (has_sums) sums.emplace(plan.sums, b.workspace, block);
  for_row_groups(range, [&](auto rows, std::size_t row) HWY_ATTR {
    backward_rows<rows()>(b, plan.statistic, row, range.width, has_sums ? &*sums : nullptr);
  });
  if (has_sums) sums->end_run();
}

// dgain and dbias (width), each perhaps absent, from the sums of all blocks.
void add_up(const Binding& b, const BackwardPlan& plan, std::size_t width) {
  for (std::size_t k : {kGain, kBias}) {
    float* out = b.outputs[k + 1].as<float>();
    if (out) sum_over_blocks(plan.sums, b.workspace, k, out, width);
  }
}

// dgain and dbias of wide rows, before dx: that may be written over dy.
void add_up_wide(const Binding& b, const RowBlocks& blocks) {
  const auto rows = std::size_t(blocks.rows), width = std::size_t(blocks.width);
  float* const low = static_cast<float*>(b.workspace);
  const WideRows in{b.inputs[0].as<float>(),
                    b.inputs[4].as<float>(),
                    b.inputs[2].as<float>(),
                    b.inputs[3].as<float>(),
                    low,
                    rows,
                    width};
  blocks.run([&](std::size_t, const RowRange& range) HWY_ATTR {
    for (std::size_t row = range.first; row < range.last; ++row) low[row] = mean_xhat(in, row);
  });
  run_columns_of_rows(width, [&](std::size_t first, std::size_t n) HWY_ATTR {
    write_wide_sums(in, first, n, b.outputs[kGain + 1].as<float>(),
                    b.outputs[kBias + 1].as<float>());
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace keel::onednn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace keel::onednn {

HWY_EXPORT(forward);
HWY_EXPORT(backward);
HWY_EXPORT(add_up);
HWY_EXPORT(add_up_wide);

Prepared prepare_layer_norm(const NodeContext& context) {
  const auto attrs = context.attrs<LayerNormAttrs>();
  const RowBlocks blocks = independent_row_blocks(row_sizes(context.input(0).shape, attrs.axes));
  return kernel_of([=](const Binding& b) {
    blocks.run([&](std::size_t, const RowRange& range) {
      HWY_DYNAMIC_DISPATCH(forward)(b, attrs.statistic(), range);
    });
  });
}

Prepared prepare_layer_norm_backward(const NodeContext& context) {
  const auto attrs = context.attrs<LayerNormAttrs>();
  const RowSizes sizes = row_sizes(context.input(0).shape, attrs.axes);
  const bool has_sums = context.output(1).bytes() + context.output(2).bytes() > 0;
  const bool wide = has_sums && is_wide(sizes);
  const RowBlocks blocks = gradient_row_blocks(sizes, kSums, has_sums);
  const BackwardPlan plan{attrs.statistic(), ColumnSums(kSums, blocks.width, blocks.count), wide};
  const auto run = [=](const Binding& b) {
    if (wide) HWY_DYNAMIC_DISPATCH(add_up_wide)(b, blocks);
    blocks.run([&](std::size_t block, const RowRange& range) {
      HWY_DYNAMIC_DISPATCH(backward)(b, plan, block, range);
    });
    if (!wide) HWY_DYNAMIC_DISPATCH(add_up)(b, plan, std::size_t(blocks.width));
  };
  if (wide) return kernel_of(run, blocks.rows * std::int64_t(sizeof(float)));
  return kernel_of(run, has_sums ? plan.sums.bytes() : 0);
}

}  // namespace keel::onednn
#endif
