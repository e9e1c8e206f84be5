// Root mean square norm takes a row at a time, in passes over data that stays in L1.
#include "src/ops/norm/rms_norm.h"

#include <algorithm>

#include "backends/onednn/kernels/kernels.h"
#include "backends/onednn/kernels/norm/affine_rows.h"

#ifndef KEEL_RMS_NORM_WEIGHTS  // this file is compiled once per instruction set
#define KEEL_RMS_NORM_WEIGHTS
namespace keel::onednn {
namespace {

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

#include "backends/onednn/simd/affine_rows-inl.h"
#include "backends/onednn/simd/row_rms-inl.h"

HWY_BEFORE_NAMESPACE();
namespace keel::onednn {
namespace HWY_NAMESPACE {
namespace {

using In = RmsNormInput;
using Out = RmsNormOutput;

// Writes y = x * rstd * w + bias and saves rstd.
void forward(const Binding& b, const float* w, double eps, const RowRange& range) {
  const RowAffine affine{w, b.inputs[In::kBias].as<float>()};
  const auto finish = [=](std::size_t) {
    return [=](Floats xhat, auto part, std::size_t i)
               KEEL_LOOP_BODY { return affine.apply(part, xhat, i); };
  };
  with_elements(b.inputs[In::kX], [&]<class T>(T) HWY_ATTR {
    write_scaled(ScaledRows<T>{b.inputs[In::kX].as<T>(), b.outputs[Out::kRstd].as<float>(),
                               ResultRows(b, range.width), range},
                 inverse_rms(range.width, eps), finish);
  });
}

// The Norm of affine_rows-inl.h.
struct RmsNormRows {
  using In = RmsNormBackwardInput;
  const float* gain;  // offset + gain

  template <class T>
  ScaledGradient gradient(const Binding& b, std::size_t row, std::size_t width) const {
    const T *x = b.inputs[In::kX].as<T>() + row * width,
            *dy = b.inputs[In::kDy].as<T>() + row * width;
    const float rstd = b.inputs[In::kRstd].as<float>()[row];
    const double products = row_products(x, dy, width, rstd, {gain, nullptr});
    return {splat(rstd), splat(float(products / double(width))), splat(rstd)};
  }
};

void backward(const Binding& b, const float* w, const AffineBlock& block) {
  affine_block(b, RmsNormRows{w}, block);
}

void add_up(const Binding& b, const AffineRows& plan) { add_affine_sums(b, plan); }

// Writes dgain and dbias of wide rows. It runs before dx is written, perhaps over dy.
void add_up_wide(const Binding& b, const RowBlocks& blocks) {
  using In = RmsNormBackwardInput;
  with_elements(b.inputs[In::kX], [&]<class T>(T) HWY_ATTR {
    add_wide_sums(b, WideRows<T>{b.inputs[In::kX].as<T>(), b.inputs[In::kDy].as<T>(), nullptr,
                                 b.inputs[In::kRstd].as<float>(), nullptr, std::size_t(blocks.rows),
                                 std::size_t(blocks.width)});
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
  using In = RmsNormInput;
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
  using In = RmsNormBackwardInput;
  const auto attrs = context.attrs<RmsNormBackwardAttrs>();
  const AffineRows plan(context, row_sizes(context.input(In::kX).shape, attrs.axes));
  const std::int64_t of_offset = offset_bytes(context, In::kGain, attrs.offset);
  const auto run = [=](const Binding& b, const Neighbours& neighbours) {
    std::byte* const memory = static_cast<std::byte*>(b.workspace);
    const float* const w =
        weights(b.inputs[In::kGain], attrs.offset, memory + offset_place(plan.sum_bytes()));
    if (plan.is_wide) HWY_DYNAMIC_DISPATCH(add_up_wide)(b, plan.blocks);
    plan.run(neighbours, [&](const AffineBlock& block) {
      HWY_DYNAMIC_DISPATCH(backward)(b, w, block);
    });
    if (!plan.is_wide) HWY_DYNAMIC_DISPATCH(add_up)(b, plan);
  };
  const std::int64_t bytes = plan.sum_bytes();
  return plan.kernel(run, of_offset > 0 ? offset_place(bytes) + of_offset : bytes);
}

}  // namespace keel::onednn
#endif
