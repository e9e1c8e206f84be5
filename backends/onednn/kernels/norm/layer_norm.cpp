// Layer norm takes a row at a time, in passes over data that stays in L1.
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

using In = LayerNormInput;
using BackIn = LayerNormBackwardInput;
using BackOut = LayerNormGradient;

// The kinds of sums, in the order in which write_gradients forms them.
enum Sums : std::size_t { kGain, kBias, kSums };

struct BackwardPlan {
  NormStatistic statistic;
  ColumnSums sums;
  // Whether rows are so wide that the workspace holds no sums, but what xhat lacks with a float
  // mean, for each row.
  bool is_wide;
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

// Writes y = (x - mean) * rstd * gain + bias and saves mean and rstd.
void forward(const Binding& b, const NormStatistic& statistic, const RowRange& range) {
  const RowAffine affine{b.inputs[In::kGain].as<float>(), b.inputs[In::kBias].as<float>()};
  with_elements(b.inputs[In::kX], [&]<class T>(T) HWY_ATTR {
    write_centred<T>(b, statistic, range,
                     [&](Floats xhat, auto part, std::size_t i)
                         KEEL_LOOP_BODY { return affine.apply(part, xhat, i); });
  });
}

template <class T>
RowGradient gradient_of(const Binding& b, const NormStatistic& statistic, std::size_t row,
                        std::size_t width) {
  ResultRows(b, width).prefetch(row * width, width);
  const SavedRow<T> saved{
      b.inputs[BackIn::kX].as<T>() + row * width, b.inputs[BackIn::kDy].as<T>() + row * width,
      b.inputs[BackIn::kMean].as<float>()[row], b.inputs[BackIn::kRstd].as<float>()[row], width};
  const double count = variance_count(std::int64_t(width), statistic.unbiased);
  return row_gradient(saved, {b.inputs[BackIn::kGain].as<float>(), nullptr},
                      double(width) / count * slope_factor(statistic, saved.rstd));
}

// Writes dx of kRows rows from `row` on and adds their share of dgain and dbias to the sums.
template <class T, std::size_t kRows>
void backward_rows(const Binding& b, const NormStatistic& statistic, std::size_t row,
                   std::size_t width, BlockSums* sums) {
  const GradientRows<T> rows =
      gradient_rows(b.inputs[BackIn::kX].as<T>(), b.inputs[BackIn::kDy].as<T>(),
                    ResultRows(b, width), row * width, width);
  [&]<std::size_t... kRow>(std::index_sequence<kRow...>) HWY_ATTR {
    // Braces keep the order of the rows, which the prefetcher of the processor relies on.
    const RowGradient of_row[] = {gradient_of<T>(b, statistic, row + kRow, width)...};
    write_gradients(rows, {b.inputs[BackIn::kGain].as<float>(), nullptr}, sums, of_row[kRow]...);
  }
  (std::make_index_sequence<kRows>());
}

void backward(const Binding& b, const BackwardPlan& plan, std::size_t block, const RowRange& range,
              const Neighbours& neighbours) {
  const bool has_sums = !plan.is_wide && (b.outputs[BackOut::kDgain] || b.outputs[BackOut::kDbias]);
  std::optional<BlockSums> sums;
  if (has_sums) sums.emplace(plan.sums, b.workspace, block);
  with_elements(b.inputs[BackIn::kX], [&]<class T>(T) HWY_ATTR {
    with_neighbours(b, neighbours, range, [&](const Binding& shown, const RowRange& part) HWY_ATTR {
      for_row_groups(part, [&](auto rows, std::size_t row) HWY_ATTR {
        backward_rows<T, rows()>(shown, plan.statistic, row, range.width,
                                 has_sums ? &*sums : nullptr);
      });
    });
  });
  if (has_sums) sums->end_run();
}

// Adds the sums of all blocks up to dgain and dbias (width), of which either may be absent.
void add_up(const Binding& b, const BackwardPlan& plan, std::size_t width) {
  const auto store = [&](Sums kind, const TensorRef& out) HWY_ATTR {
    if (out) sum_over_blocks(plan.sums, b.workspace, kind, out.as<float>(), width);
  };
  store(kGain, b.outputs[BackOut::kDgain]);
  store(kBias, b.outputs[BackOut::kDbias]);
}

template <class T>
void add_up_wide_of(const Binding& b, const RowBlocks& blocks) {
  const auto rows = std::size_t(blocks.rows), width = std::size_t(blocks.width);
  float* const low = static_cast<float*>(b.workspace);
  const WideRows<T> in{b.inputs[BackIn::kX].as<T>(),
                       b.inputs[BackIn::kDy].as<T>(),
                       b.inputs[BackIn::kMean].as<float>(),
                       b.inputs[BackIn::kRstd].as<float>(),
                       low,
                       rows,
                       width};
  blocks.run([&](std::size_t, const RowRange& range) HWY_ATTR {
    for (std::size_t row = range.first; row < range.last; ++row) low[row] = mean_xhat(in, row);
  });
  run_columns_of_rows(width, [&](std::size_t first, std::size_t n) HWY_ATTR {
    write_wide_sums(in, first, n, b.outputs[BackOut::kDgain].as<float>(),
                    b.outputs[BackOut::kDbias].as<float>());
  });
}

// Writes dgain and dbias of wide rows. It runs before dx is written, perhaps over dy.
void add_up_wide(const Binding& b, const RowBlocks& blocks) {
  with_elements(b.inputs[BackIn::kX], [&]<class T>(T) HWY_ATTR { add_up_wide_of<T>(b, blocks); });
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
  const RowBlocks blocks =
      independent_row_blocks(row_sizes(context.input(In::kX).shape, attrs.axes));
  return kernel_of_rows(blocks, [=](const Binding& b, const RowRange& range) {
    HWY_DYNAMIC_DISPATCH(forward)(b, attrs.statistic(), range);
  });
}

Prepared prepare_layer_norm_backward(const NodeContext& context) {
  const auto attrs = context.attrs<LayerNormBackwardAttrs>();
  const RowSizes sizes = row_sizes(context.input(BackIn::kX).shape, attrs.axes);
  const bool has_sums =
      context.output(BackOut::kDgain).bytes() + context.output(BackOut::kDbias).bytes() > 0;
  const bool wide = has_sums && is_wide(sizes);
  const RowBlocks blocks = gradient_row_blocks(sizes, kSums, has_sums);
  const BackwardPlan plan{attrs.statistic(), ColumnSums(kSums, blocks.width, blocks.count), wide};
  const auto run = [=](const Binding& b, const Neighbours& neighbours) {
    if (wide) HWY_DYNAMIC_DISPATCH(add_up_wide)(b, blocks);
    blocks.run([&](std::size_t block, const RowRange& range) {
      HWY_DYNAMIC_DISPATCH(backward)(b, plan, block, range, neighbours);
    });
    if (!wide) HWY_DYNAMIC_DISPATCH(add_up)(b, plan, std::size_t(blocks.width));
  };
  if (!wide) return row_kernel_of(blocks.width, run, has_sums ? plan.sums.bytes() : 0);
  // Sums of wide columns read all of dy before dx is written.
  return kernel_of([run](const Binding& b) { run(b, {}); },
                   blocks.rows * std::int64_t(sizeof(float)));
}

}  // namespace keel::onednn
#endif
