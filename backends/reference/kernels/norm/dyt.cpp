// Reference dynamic tanh.
#include "src/ops/norm/dyt.h"

#include "backends/reference/kernels/norm/curve.h"

namespace keel::reference {

Prepared prepare_dyt(const NodeContext& context) {
  using In = DytInput;
  const RowSizes sizes = row_sizes(context.input(In::kX).shape, context.attrs<DytAttrs>().axes);
  return kernel_of([=](const Binding& b) {
    const CurveForward norm{.x = b.inputs[In::kX],
                            .gain = b.inputs[In::kGain],
                            .bias = b.inputs[In::kBias],
                            .alpha = b.inputs[In::kAlpha],
                            .shift = {},
                            .y = b.outputs[DytOutput::kY]};
    norm.run(*kDyt.norm->curve, sizes);
  });
}

Prepared prepare_dyt_backward(const NodeContext& context) {
  using In = DytBackwardInput;
  using Out = DytGradient;
  const RowSizes sizes =
      row_sizes(context.input(In::kX).shape, context.attrs<DytBackwardAttrs>().axes);
  return kernel_of([=](const Binding& b) {
    const CurveBackward norm{.x = b.inputs[In::kX],
                             .gain = b.inputs[In::kGain],
                             .alpha = b.inputs[In::kAlpha],
                             .shift = {},
                             .dy = b.inputs[In::kDy],
                             .dx = b.outputs[Out::kDx],
                             .dgain = b.outputs[Out::kDgain],
                             .dbias = b.outputs[Out::kDbias],
                             .dalpha = b.outputs[Out::kDalpha],
                             .dshift = {}};
    norm.run(*kDyt.norm->curve, sizes);
  });
}

}  // namespace keel::reference
