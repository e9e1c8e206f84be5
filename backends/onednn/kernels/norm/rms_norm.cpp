// Root mean square norm takes a row at a time, in passes over data that stays in L1.
#include "src/ops/norm/rms_norm.h"

#include <algorithm>
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

using In = RmsNormInput;
using Out = RmsNormOutput;
using BackIn = RmsNormBackwardInput;
using BackOut = RmsNormGradient;

// The kinds of sums, in the order in which write_gradients forms them.
enum Sums : std::size_t { kGain, kBias, kSums };

struct BackwardPlan {
  ColumnSums sums;
  bool is_wide;  // whether rows are so wide that dgain and dbias are summed up by themselves
  const float* w = nullptr;  // the factor of xhat, or null for 1
};

// The workspace of offset + gain, after that of `before` bytes; none where the offset is 0.
std::int64_t offset_bytes(const NodeContext& context, int gain, double offset) {
  return offset != 0 && context.has(gain) ? context.input(gain).bytes() : 0;
}
std::int64_t offset_place(std::int64_t before) { return (before + 63) / 64 * 64; }

// Returns the factor of xhat, or null for 1: the gain, or offset + gain in `memory`.
const float* weights(const TensorRef& gain, double offset, void* memory) {
  if (!gain || offset == 0) return gain.as<float>();
  float* const sums = static_cast<float*>(memory);
  std::transform(gain.as<float>(), gain.as<float>() + gain.elements(), sums,
                 [offset](float of) { return float(double(of) + offset); });
  return sums;
}

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

// Writes y = x * rstd * w + bias of kRows rows from `row` on and saves rstd.
template <class T, std::size_t kRows>
void forward_rows(const Binding& b, const float* w, double eps, std::size_t row,
                  std::size_t width) {
  const RowAffine affine{w, b.inputs[In::kBias].as<float>()};
  const T* x = b.inputs[In::kX].as<T>() + row * width;
  const ResultRows y(b, width);
  float* rstd = b.outputs[Out::kRstd].as<float>() + row;
  for (std::size_t k = 0; k < kRows; ++k) {
    y.prefetch((row + k) * width, width);
    const double mean_square = row_squares(x + k * width, width) / double(width);
    rstd[k] = float(1 / std::sqrt(mean_square + eps));
  }
  for (std::size_t k = 0; k < kRows; ++k, x += width) {
    prefetch_row(x + kRows * width, width);
    const Floats factor = splat(rstd[k]);
    write_row(y, (row + k) * width, width, [=](auto part, std::size_t i) KEEL_LOOP_BODY {
      return affine.apply(part, hn::Mul(part.load(x + i), factor), i);
    });
  }
}

void forward(const Binding& b, const float* w, double eps, const RowRange& range) {
  with_elements(b.inputs[In::kX], [&]<class T>(T) HWY_ATTR {
    for_row_groups(range, [&](auto rows, std::size_t row)
                              HWY_ATTR { forward_rows<T, rows()>(b, w, eps, row, range.width); });
  });
}

template <class T>
ScaledGradient gradient_of(const Binding& b, const float* w, std::size_t row, std::size_t width) {
  ResultRows(b, width).prefetch(row * width, width);
  const T *x = b.inputs[BackIn::kX].as<T>() + row * width,
          *dy = b.inputs[BackIn::kDy].as<T>() + row * width;
  const float rstd = b.inputs[BackIn::kRstd].as<float>()[row];
  const double products = row_products(x, dy, width, rstd, {w, nullptr});
  return {splat(rstd), splat(float(products / double(width))), splat(rstd)};
}

// Writes dx of kRows rows from `row` on and adds their share of dgain and dbias to the sums.
template <class T, std::size_t kRows>
void backward_rows(const Binding& b, const float* w, std::size_t row, std::size_t width,
                   BlockSums* sums) {
  const GradientRows<T> rows =
      gradient_rows(b.inputs[BackIn::kX].as<T>(), b.inputs[BackIn::kDy].as<T>(),
                    ResultRows(b, width), row * width, width);
  [&]<std::size_t... kRow>(std::index_sequence<kRow...>) HWY_ATTR {
    const ScaledGradient of_row[] = {gradient_of<T>(b, w, row + kRow, width)...};
    write_gradients(rows, {w, nullptr}, sums, of_row[kRow]...);
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
        backward_rows<T, rows()>(shown, plan.w, row, range.width, has_sums ? &*sums : nullptr);
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
  const WideRows<T> in{b.inputs[BackIn::kX].as<T>(),
                       b.inputs[BackIn::kDy].as<T>(),
                       nullptr,
                       b.inputs[BackIn::kRstd].as<float>(),
                       nullptr,
                       rows,
                       width};
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

Prepared prepare_rms_norm(const NodeContext& context) {
  const auto attrs = context.attrs<RmsNormAttrs>();
  const RowBlocks blocks =
      independent_row_blocks(row_sizes(context.input(In::kX).shape, attrs.axes));
  const auto run = [=](const Binding& b, const Neighbours& neighbours) {
    const float* const w = weights(b.inputs[In::kGain], attrs.offset, b.workspace);
    blocks.run([&](std::size_t, const RowRange& range) {
      with_neighbours(b, neighbours, range, [&](const Binding& shown, const RowRange& part) {
        HWY_DYNAMIC_DISPATCH(forward)(shown, w, attrs.eps, part);
      });
    });
  };
  return row_kernel_of(blocks.width, run, offset_bytes(context, In::kGain, attrs.offset));
}

Prepared prepare_rms_norm_backward(const NodeContext& context) {
  const auto attrs = context.attrs<RmsNormBackwardAttrs>();
  const RowSizes sizes = row_sizes(context.input(BackIn::kX).shape, attrs.axes);
  const bool has_sums =
      context.output(BackOut::kDgain).bytes() + context.output(BackOut::kDbias).bytes() > 0;
  const bool wide = has_sums && is_wide(sizes);
  const RowBlocks blocks = gradient_row_blocks(sizes, kSums, has_sums);
  const BackwardPlan plan{ColumnSums(kSums, blocks.width, blocks.count), wide};
  const std::int64_t of_sums = has_sums && !wide ? plan.sums.bytes() : 0;
  const std::int64_t of_offset = offset_bytes(context, BackIn::kGain, attrs.offset);
  const auto run = [=](const Binding& b, const Neighbours& neighbours) {
    BackwardPlan of_run = plan;
    of_run.w = weights(b.inputs[BackIn::kGain], attrs.offset,
                       static_cast<std::byte*>(b.workspace) + offset_place(of_sums));
    if (wide) HWY_DYNAMIC_DISPATCH(add_up_wide)(b, blocks);
    blocks.run([&](std::size_t block, const RowRange& range) {
      HWY_DYNAMIC_DISPATCH(backward)(b, of_run, block, range, neighbours);
    });
    if (!wide) HWY_DYNAMIC_DISPATCH(add_up)(b, plan, std::size_t(blocks.width));
  };
  const std::int64_t workspace = of_offset > 0 ? offset_place(of_sums) + of_offset : of_sums;
  // Sums of wide columns read all of dy before dx is written.
  if (wide) return kernel_of([run](const Binding& b) { run(b, {}); }, workspace);
  return row_kernel_of(blocks.width, run, workspace);
}

}  // namespace keel::onednn
#endif
