// Reference dynamic erf.
#include "src/ops/norm/derf.h"

#include "backends/reference/kernels/norm/curve.h"

namespace keel::reference {

Prepared prepare_derf(const NodeContext& context) {
  using In = DerfInput;
  const RowSizes sizes = row_sizes(context.input(In::kX).shape, context.attrs<DerfAttrs>().axes);
  return kernel_of([=](const Binding& b) {
    const CurveForward norm{.x = b.inputs[In::kX],
                            .gain = b.inputs[In::kGain],
                            .bias = b.inputs[In::kBias],
                            .alpha = b.inputs[In::kAlpha],
                            .shift = b.inputs[In::kShift],
                            .y = b.outputs[DerfOutput::kY]};
    norm.run(*kDerf.norm->curve, sizes);
  });
}

Prepared prepare_derf_backward(const NodeContext& context) {
  using In = DerfBackwardInput;
  using Out = DerfGradient;
  const RowSizes sizes =
      row_sizes(context.input(In::kX).shape, context.attrs<DerfBackwardAttrs>().axes);
  return kernel_of([=](const Binding& b) {
    const CurveBackward norm{.x = b.inputs[In::kX],
                             .gain = b.inputs[In::kGain],
                             .alpha = b.inputs[In::kAlpha],
                             .shift = b.inputs[In::kShift],
                             .dy = b.inputs[In::kDy],
                             .dx = b.outputs[Out::kDx],
                             .dgain = b.outputs[Out::kDgain],
                             .dbias = b.outputs[Out::kDbias],
                             .dalpha = b.outputs[Out::kDalpha],
                             .dshift = b.outputs[Out::kDshift]};
    norm.run(*kDerf.norm->curve, sizes);
  });
}

}  // namespace keel::reference
