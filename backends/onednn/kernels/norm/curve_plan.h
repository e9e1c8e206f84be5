// The tensors, the sums and the kernels of the norms of elements, y = gain f(u) + bias with
// u = alpha x + shift.
#pragma once

#include "backends/onednn/kernels/norm/tile_plan.h"
#include "backends/onednn/row_blocks.h"
#include "src/runtime/backend.h"

namespace keel::onednn {

// y is output 0 of the binding.
struct CurveForward {
  const Binding& binding;
  TensorRef x, gain, bias, alpha, shift;
};

// dx is output 0 of the binding.
struct CurveBackward {
  const Binding& binding;
  TensorRef x, gain, alpha, shift, dy, dgain, dbias, dalpha, dshift;
};

// The one number of a tensor, or 0 where it is absent.
inline float number_of(const TensorRef& t) { return t ? *t.as<float>() : 0; }

// The sums of a column: of dy f(u), dy, k x and k, where k = dy gain f'(u). The last two are added
// up over all columns.
struct CurveSums {
  enum : std::size_t { kGain, kBias, kAlpha, kShift, kCount };
};
using CurvePlan = TilePlan<CurveSums::kCount, CurveSums::kAlpha>;

// The norm's shift, or none where its inputs or gradients have no such place.
template <class Places>
TensorRef shift_of(const std::vector<TensorRef>& tensors) {
  if constexpr (requires { Places::kShift; }) {
    return tensors[Places::kShift];
  } else if constexpr (requires { Places::kDshift; }) {
    return tensors[Places::kDshift];
  } else {
    return {};
  }
}

// Makes the kernel of the forward: forward(tensors, rows) computes some rows.
template <class Attrs, class In, class Forward>
Prepared prepare_curve(const NodeContext& context, Forward forward) {
  const RowBlocks blocks =
      independent_row_blocks(row_sizes(context.input(In::kX).shape, context.attrs<Attrs>().axes));
  return kernel_of([=](const Binding& b) {
    const CurveForward tensors{.binding = b,
                               .x = b.inputs[In::kX],
                               .gain = b.inputs[In::kGain],
                               .bias = b.inputs[In::kBias],
                               .alpha = b.inputs[In::kAlpha],
                               .shift = shift_of<In>(b.inputs)};
    blocks.run([&](std::size_t, const RowRange& range) { forward(tensors, range); });
  });
}

// Makes the kernel of the backward: backward(tensors, plan, tile) computes a tile, then
// add_up(tensors, plan) the gradients of parameters.
template <class Attrs, class In, class Out, class Backward, class AddUp>
Prepared prepare_curve_backward(const NodeContext& context, Backward backward, AddUp add_up) {
  const CurvePlan plan(row_sizes(context.input(In::kX).shape, context.attrs<Attrs>().axes));
  const auto run = [=](const Binding& b) {
    const CurveBackward tensors{.binding = b,
                                .x = b.inputs[In::kX],
                                .gain = b.inputs[In::kGain],
                                .alpha = b.inputs[In::kAlpha],
                                .shift = shift_of<In>(b.inputs),
                                .dy = b.inputs[In::kDy],
                                .dgain = b.outputs[Out::kDgain],
                                .dbias = b.outputs[Out::kDbias],
                                .dalpha = b.outputs[Out::kDalpha],
                                .dshift = shift_of<Out>(b.outputs)};
    plan.run([&](const GradientTile& tile) { backward(tensors, plan, tile); });
    add_up(tensors, plan);
  };
  return kernel_of(run, plan.bytes());
}

}  // namespace keel::onednn
