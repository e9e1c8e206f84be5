// Dynamic erf.
#include "backends/cuda/kernels/kernels.h"
#include "backends/cuda/kernels/norm/curve.cuh"
#include "src/ops/norm/derf.h"

namespace keel::cuda {
namespace {

struct Erf {
  __device__ static float value(float u) { return error_function_and_slope(u).value; }
  __device__ static WithSlope with_slope(float u) { return error_function_and_slope(u); }
};

}  // namespace

Prepared prepare_derf(const NodeContext& context) {
  using In = DerfInput;
  const RowSizes sizes = row_sizes(context.input(In::kX).shape, context.attrs<DerfAttrs>().axes);
  return kernel_of([=](const Binding& b) {
    run_curve<Erf>({.x = Data(b.inputs[In::kX]),
                    .gain = input(b.inputs[In::kGain]),
                    .bias = input(b.inputs[In::kBias]),
                    .numbers = {input(b.inputs[In::kAlpha]), input(b.inputs[In::kShift])},
                    .y = Result(b.outputs[DerfOutput::kY])},
                   sizes);
  });
}

Prepared prepare_derf_backward(const NodeContext& context) {
  using In = DerfBackwardInput;
  using Out = DerfGradient;
  const RowSizes sizes =
      row_sizes(context.input(In::kX).shape, context.attrs<DerfBackwardAttrs>().axes);
  const auto run = [=](const Binding& b) {
    run_curve_backward<Erf>(b,
                            {.x = Data(b.inputs[In::kX]),
                             .dy = Data(b.inputs[In::kDy]),
                             .gain = input(b.inputs[In::kGain]),
                             .numbers = {input(b.inputs[In::kAlpha]), input(b.inputs[In::kShift])},
                             .dx = Result(b.outputs[Out::kDx]),
                             .dgain = output(b.outputs[Out::kDgain]),
                             .dbias = output(b.outputs[Out::kDbias]),
                             .dalpha = output(b.outputs[Out::kDalpha]),
                             .dshift = output(b.outputs[Out::kDshift])},
                            sizes);
  };
  return kernel_of(run, curve_workspace(sizes));
}

}  // namespace keel::cuda
