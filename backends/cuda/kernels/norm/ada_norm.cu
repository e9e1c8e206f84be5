// AdaNorm multiplies a centred row by a scale that falls with it.
#include "backends/cuda/kernels/kernels.h"
#include "backends/cuda/kernels/norm/centred_row.cuh"
#include "src/ops/norm/ada_norm.h"

namespace keel::cuda {
namespace {

using In = AdaNormInput;
using Out = AdaNormOutput;
using BackIn = AdaNormBackwardInput;
using BackOut = AdaNormGradient;

// phi = C * (1 - k * xhat).
struct Phi {
  float C, k;
  __device__ float of(float xhat) const { return C * (1 - k * xhat); }
};

struct Forward : Bare {
  Phi phi;
  __device__ float operator()(float xhat, float, float) const { return phi.of(xhat) * xhat; }
};

struct Gradient : Bare {
  Phi phi;
  __device__ float operator()(float dy, float xhat, float) const { return phi.of(xhat) * dy; }
};

}  // namespace

Prepared prepare_ada_norm(const NodeContext& context) {
  const auto attrs = context.attrs<AdaNormAttrs>();
  const RowSizes sizes = row_sizes(context.input(In::kX).shape, attrs.axes);
  return kernel_of([=](const Binding& b) {
    run_centred_forward(
        {Data(b.inputs[In::kX]), Result(b.outputs[Out::kY]), output(b.outputs[Out::kMean]),
         output(b.outputs[Out::kRstd]), sizes, device_statistic(attrs.statistic())},
        Forward{{}, {float(attrs.C), float(attrs.k)}});
  });
}

Prepared prepare_ada_norm_backward(const NodeContext& context) {
  const auto attrs = context.attrs<AdaNormAttrs>();
  const RowSizes sizes = row_sizes(context.input(BackIn::kX).shape, attrs.axes);
  // The derivative of phi * xhat has twice the slope of phi, which a detached phi does not see.
  const Phi phi{float(attrs.C), float(attrs.detach ? attrs.k : 2 * attrs.k)};
  return kernel_of([=](const Binding& b) {
    run_centred_backward(
        {Data(b.inputs[BackIn::kX]), Data(b.inputs[BackIn::kDy]), input(b.inputs[BackIn::kMean]),
         input(b.inputs[BackIn::kRstd]), Result(b.outputs[BackOut::kDx]), sizes,
         device_statistic(attrs.statistic())},
        Gradient{{}, phi});
  });
}

}  // namespace keel::cuda
