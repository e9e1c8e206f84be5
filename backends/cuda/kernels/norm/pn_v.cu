// PN-V: a feature by its quadratic mean over the batch's rows.
#include "backends/cuda/kernels/kernels.h"
#include "backends/cuda/kernels/norm/uncentred_columns.cuh"
#include "src/ops/norm/pn_v.h"

namespace keel::cuda {
namespace {

// rpsi of the batch, and psi2'; in evaluation rpsi of psi2.
struct Statistics {
  double eps, keep;
  Global<const float> psi2;
  Global<float> rpsi, next_psi2;

  __device__ void operator()(std::int64_t c, SquareSums sums) const {
    const double running = psi2[c];
    const double batch = sums.count > 0 ? sums.squares / sums.count : running;
    rpsi[c] = float(1 / sqrt(batch + eps));
    next_psi2[c] = float(sums.count > 0 ? keep * running + (1 - keep) * batch : running);
  }
  __device__ void operator()(std::int64_t c) const { rpsi[c] = float(1 / sqrt(psi2[c] + eps)); }
};

void run_forward(const Binding& b, const ColumnSizes& sizes, const PnVAttrs& attrs) {
  const ColumnScratch scratch(b, sizes, UncentredTerms::kSums);
  const auto x = input(b.inputs[0]);
  const KeptRows kept = kept_rows(b.inputs[4]);
  const Statistics statistics{attrs.eps, attrs.keep, input(b.inputs[3]), output(b.outputs[1]),
                              output(b.outputs[2])};
  if (attrs.training) {
    column_sums(sizes, UncentredTerms{x, kept}, scratch.partial(),
                FinishSquares<Statistics>{statistics});
  } else {
    each_channel(sizes, statistics);
  }
  map_columns(sizes, ScaleColumns{x,
                                  statistics.rpsi,
                                  {},
                                  input(b.inputs[1]),
                                  input(b.inputs[2]),
                                  kept,
                                  output(b.outputs[0])});
}

// dgain, dbias and the slope of dx: the mean of g * xhat.
struct Gradients {
  Global<const float> rpsi, gain;
  Global<float> dgain, dbias;
  Global<double> slope;

  __device__ void operator()(std::int64_t c, UncentredGradientSums sums) const {
    const double dy_xhat = sums.dy_x * rpsi[c];
    if (dgain) dgain[c] = float(dy_xhat);
    if (dbias) dbias[c] = float(sums.dy);
    slope[c] = sums.count > 0 ? gain.get(c, 1) * dy_xhat / sums.count : 0;
  }
};

void run_backward(const Binding& b, const ColumnSizes& sizes, const PnVAttrs& attrs) {
  const ColumnScratch scratch(b, sizes, UncentredGradientTerms::kSums);
  const auto x = input(b.inputs[0]), gain = input(b.inputs[1]), rpsi = input(b.inputs[2]),
             dy = input(b.inputs[3]);
  const KeptRows kept = kept_rows(b.inputs[4]);
  const auto slope = scratch.vector(0);
  column_sums(sizes, UncentredGradientTerms{x, dy, kept}, scratch.partial(),
              FinishUncentredGradient<Gradients>{
                  {rpsi, gain, output(b.outputs[1]), output(b.outputs[2]), slope}});
  map_columns(sizes, ScaleColumnsGradient{x,
                                          dy,
                                          rpsi,
                                          rpsi,
                                          {},
                                          gain,
                                          attrs.training ? slope : Global<double>(),
                                          kept,
                                          output(b.outputs[0])});
}

}  // namespace

Prepared prepare_pn_v(const NodeContext& context) {
  const auto attrs = context.attrs<PnVAttrs>();
  const ColumnSizes sizes = column_sizes(context.input(0).shape);
  return kernel_of([=](const Binding& b) { run_forward(b, sizes, attrs); },
                   ColumnScratch::bytes(sizes, UncentredTerms::kSums, 0));
}

Prepared prepare_pn_v_backward(const NodeContext& context) {
  const auto attrs = context.attrs<PnVAttrs>();
  const ColumnSizes sizes = column_sizes(context.input(0).shape);
  return kernel_of([=](const Binding& b) { run_backward(b, sizes, attrs); },
                   ColumnScratch::bytes(sizes, UncentredGradientTerms::kSums, 1));
}

}  // namespace keel::cuda
