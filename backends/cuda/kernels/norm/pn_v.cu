// PN-V divides a feature by its quadratic mean over the batch's rows.
#include "backends/cuda/kernels/kernels.h"
#include "backends/cuda/kernels/norm/uncentred_columns.cuh"
#include "src/ops/norm/pn_v.h"

namespace keel::cuda {
namespace {

using In = PnVInput;
using Out = PnVOutput;
using BackIn = PnVBackwardInput;
using BackOut = PnVGradient;

// Writes rstd of the batch and psi2', or in evaluation rstd of psi2.
struct Statistics {
  double eps, keep;
  Global<const float> psi2;
  Global<float> rstd, next_psi2;

  __device__ void prefetch(std::int64_t c) const { psi2.prefetch(c); }
  __device__ void operator()(std::int64_t c, SquareSums sums) const {
    const double running = psi2[c];
    const double batch = sums.count > 0 ? sums.squares / sums.count : running;
    rstd[c] = float(1 / sqrt(batch + eps));
    next_psi2[c] = float(sums.count > 0 ? keep * running + (1 - keep) * batch : running);
  }
  __device__ void operator()(std::int64_t c) const { rstd[c] = float(1 / sqrt(psi2[c] + eps)); }
};

void run_forward(const Binding& b, const ColumnSizes& sizes, const PnVAttrs& attrs) {
  run_uncentred_statistics<In>(
      b, sizes, attrs.training,
      Statistics{attrs.eps, attrs.keep, input(b.inputs[In::kPsi2]), output(b.outputs[Out::kRstd]),
                 output(b.outputs[Out::kNextPsi2])});
  write_uncentred<In, Out>(b, sizes);
}

// Writes dgain, dbias and the slope of dx, which is the mean of g * xhat.
struct Gradients {
  Global<const float> gain;
  Global<float> dgain, dbias;
  Global<double> slope;

  __device__ void prefetch(std::int64_t c) const { gain.prefetch(c); }
  __device__ void operator()(std::int64_t c, UncentredGradientSums sums) const {
    if (dgain) dgain[c] = float(sums.dy_xhat);
    if (dbias) dbias[c] = float(sums.dy);
    slope[c] = sums.count > 0 ? gain.get(c, 1) * sums.dy_xhat / sums.count : 0;
  }
};

void run_backward(const Binding& b, const ColumnSizes& sizes, const PnVBackwardAttrs& attrs) {
  const UncentredBackward tensors = uncentred_tensors<BackIn, BackOut>(b, attrs.training);
  run_uncentred_backward(
      b, sizes, tensors,
      Gradients{tensors.gain, output(b.outputs[BackOut::kDgain]),
                output(b.outputs[BackOut::kDbias]), uncentred_scratch(b, sizes, true).vector(0)});
}

}  // namespace

Prepared prepare_pn_v(const NodeContext& context) {
  return prepare_columns<PnVAttrs>(context, kUncentredSums, 0, run_forward);
}
Prepared prepare_pn_v_backward(const NodeContext& context) {
  return prepare_columns<PnVBackwardAttrs>(context, kUncentredGradientSums, 1, run_backward);
}

}  // namespace keel::cuda
