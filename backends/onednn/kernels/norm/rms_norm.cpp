// Root mean square norm: a row at a time, in passes over data that stays in L1.
#include "src/ops/norm/rms_norm.h"

#include <cmath>
#include <optional>
#include <utility>

#include "backends/onednn/column_sums.h"
#include "backends/onednn/kernels/kernels.h"
#include "backends/onednn/row_blocks.h"

#ifndef KEEL_RMS_NORM_SUMS  // this file is compiled once per instruction set
#define KEEL_RMS_NORM_SUMS
namespace keel::onednn {
namespace {

enum Sums : std::size_t { kGain, kBias, kSums };  // in the order of write_gradients

struct BackwardPlan {
  ColumnSums sums;
  bool is_wide;  // dgain and dbias are summed up by themselves
};

}  // namespace
}  // namespace keel::onednn
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/onednn/kernels/norm/rms_norm.cpp"
#include <hwy/foreach_target.h>

#include "backends/onednn/simd/column_sums-inl.h"
#include "backends/onednn/simd/row_gradient-inl.h"
#include "backends/onednn/simd/row_rms-inl.h"
#include "backends/onednn/simd/wide_rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace keel::onednn {
namespace HWY_NAMESPACE {
namespace {

// kRows rows from `row` on: y = x * rrms * gain + bias; rrms is saved.
template <std::size_t kRows>
void forward_rows(const Binding& b, double eps, std::size_t row, std::size_t width) {
  const RowAffine affine{b.inputs[1].as<float>(), b.inputs[2].as<float>()};
  const float* x = b.inputs[0].as<float>() + row * width;
  const ResultRows y(b, width);
  float* rrms = b.outputs[1].as<float>() + row;
  for (std::size_t k = 0; k < kRows; ++k) {
    y.prefetch((row + k) * width, width);
    const double mean_square = row_squares(x + k * width, width) / double(width);
    rrms[k] = float(1 / std::sqrt(mean_square + eps));
  }
  for (std::size_t k = 0; k < kRows; ++k, x += width) {
    prefetch_row(x + kRows * width, width);
    for_lanes(width, [&, factor = splat(rrms[k]), at = (row + k) * width](
                         auto part, std::size_t i) KEEL_LOOP_BODY {
      y.put(part, affine.apply(part, hn::Mul(part.load(x + i), factor), i), at + i);
    });
  }
}

void forward(const Binding& b, double eps, const RowRange& range) {
  for_row_groups(range, [&](auto rows, std::size_t row)
                            HWY_ATTR { forward_rows<rows()>(b, eps, row, range.width); });
}

ScaledGradient gradient_of(const Binding& b, std::size_t row, std::size_t width) {
  ResultRows(b, width).prefetch(row * width, width);
  const float *x = b.inputs[0].as<float>() + row * width,
              *dy = b.inputs[3].as<float>() + row * width;
  const float rrms = b.inputs[2].as<float>()[row];
  const double products = row_products(x, dy, width, rrms, {b.inputs[1].as<float>(), nullptr});
  return {splat(rrms), splat(float(products / double(width))), splat(rrms)};
}

// kRows rows from `row` on: dx, and their share of dgain and dbias.
template <std::size_t kRows>
void backward_rows(const Binding& b, std::size_t row, std::size_t width, BlockSums* sums) {
  const GradientRows rows = gradient_rows(b.inputs[0].as<float>(), b.inputs[3].as<float>(),
                                          ResultRows(b, width), row * width, width);
  [&]<std::size_t... kRow>(std::index_sequence<kRow...>) HWY_ATTR {
    const ScaledGradient of_row[] = {gradient_of(b, row + kRow, width)...};
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
    backward_rows<rows()>(b, row, range.width, has_sums ? &*sums : nullptr);
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
  const WideRows in{b.inputs[0].as<float>(),
                    b.inputs[3].as<float>(),
                    nullptr,
                    b.inputs[2].as<float>(),
                    nullptr,
                    rows,
                    width};
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

Prepared prepare_rms_norm(const NodeContext& context) {
  const auto attrs = context.attrs<RmsNormAttrs>();
  const RowBlocks blocks = independent_row_blocks(row_sizes(context.input(0).shape, attrs.axes));
  return kernel_of([=](const Binding& b) {
    blocks.run([&](std::size_t, const RowRange& range) {
      HWY_DYNAMIC_DISPATCH(forward)(b, attrs.eps, range);
    });
  });
}

Prepared prepare_rms_norm_backward(const NodeContext& context) {
  const std::int64_t axes = context.attrs<RmsNormAttrs>().axes;
  const RowSizes sizes = row_sizes(context.input(0).shape, axes);
  const bool has_sums = context.output(1).bytes() + context.output(2).bytes() > 0;
  const bool wide = has_sums && is_wide(sizes);
  const RowBlocks blocks = gradient_row_blocks(sizes, kSums, has_sums);
  const BackwardPlan plan{ColumnSums(kSums, blocks.width, blocks.count), wide};
  const auto run = [=](const Binding& b) {
    if (wide) HWY_DYNAMIC_DISPATCH(add_up_wide)(b, blocks);
    blocks.run([&](std::size_t block, const RowRange& range) {
      HWY_DYNAMIC_DISPATCH(backward)(b, plan, block, range);
    });
    if (!wide) HWY_DYNAMIC_DISPATCH(add_up)(b, plan, std::size_t(blocks.width));
  };
  return kernel_of(run, has_sums && !wide ? plan.sums.bytes() : 0);
}

}  // namespace keel::onednn
#endif
