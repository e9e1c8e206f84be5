// Dynamic tanh.
#include "backends/cuda/kernels/kernels.h"
#include "backends/cuda/kernels/norm/curve.cuh"
#include "src/ops/norm/dyt.h"

namespace keel::cuda {
namespace {

struct Tanh {
  __device__ static float value(float u) { return hyperbolic_tangent(u); }
  __device__ static WithSlope with_slope(float u) { return tangent_and_slope(u); }
};

}  // namespace

Prepared prepare_dyt(const NodeContext& context) {
  using In = DytInput;
  const RowSizes sizes = row_sizes(context.input(In::kX).shape, context.attrs<DytAttrs>().axes);
  return kernel_of([=](const Binding& b) {
    run_curve<Tanh>({.x = Data(b.inputs[In::kX]),
                     .gain = input(b.inputs[In::kGain]),
                     .bias = input(b.inputs[In::kBias]),
                     .numbers = {input(b.inputs[In::kAlpha]), {}},
                     .y = Result(b.outputs[DytOutput::kY])},
                    sizes);
  });
}

Prepared prepare_dyt_backward(const NodeContext& context) {
  using In = DytBackwardInput;
  using Out = DytGradient;
  const RowSizes sizes =
      row_sizes(context.input(In::kX).shape, context.attrs<DytBackwardAttrs>().axes);
  const auto run = [=](const Binding& b) {
    run_curve_backward<Tanh>(b,
                             {.x = Data(b.inputs[In::kX]),
                              .dy = Data(b.inputs[In::kDy]),
                              .gain = input(b.inputs[In::kGain]),
                              .numbers = {input(b.inputs[In::kAlpha]), {}},
                              .dx = Result(b.outputs[Out::kDx]),
                              .dgain = output(b.outputs[Out::kDgain]),
                              .dbias = output(b.outputs[Out::kDbias]),
                              .dalpha = output(b.outputs[Out::kDalpha]),
                              .dshift = {}},
                             sizes);
  };
  return kernel_of(run, curve_workspace(sizes));
}

}  // namespace keel::cuda
