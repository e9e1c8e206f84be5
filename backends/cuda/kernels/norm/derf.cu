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
  return prepare_curve<Erf, DerfAttrs, DerfInput>(context);
}

Prepared prepare_derf_backward(const NodeContext& context) {
  return prepare_curve_backward<Erf, DerfBackwardAttrs, DerfBackwardInput, DerfGradient>(context);
}

}  // namespace keel::cuda
