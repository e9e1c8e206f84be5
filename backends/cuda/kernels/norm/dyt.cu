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
  return prepare_curve<Tanh, DytAttrs, DytInput>(context);
}

Prepared prepare_dyt_backward(const NodeContext& context) {
  return prepare_curve_backward<Tanh, DytBackwardAttrs, DytBackwardInput, DytGradient>(context);
}

}  // namespace keel::cuda
