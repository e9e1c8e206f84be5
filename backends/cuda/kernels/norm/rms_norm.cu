// Root mean square norm divides a row by its quadratic mean; it has gain and bias.
#include "backends/cuda/kernels/kernels.h"
#include "backends/cuda/kernels/norm/persistent_rows.cuh"
#include "backends/cuda/kernels/norm/scaled_row.cuh"
#include "src/ops/norm/rms_norm.h"
#include "src/ops/norm/sizes.h"

namespace keel::cuda {
namespace {

using In = RmsNormInput;
using Out = RmsNormOutput;
using BackIn = RmsNormBackwardInput;
using BackOut = RmsNormGradient;

// The terms that an element adds to dgain and dbias.
struct ParameterTerms : PlainSums {
  static constexpr int kTensors = 2, kSums = 2;
  Data tensors[kTensors];  // x, dy
  Global<const float> rstd;

  ParameterTerms(Data x, Data dy, Global<const float> rstd) : tensors{x, dy}, rstd(rstd) {}
  __device__ void operator()(const float (&of)[kTensors], const TileStep& step, const Channel&,
                             double (&sums)[kSums]) const {
    sums[0] += double(of[1]) * (of[0] * rstd[step.row]);
    sums[1] += of[1];
  }
};

// dgain and dbias of rows that cannot be swept are formed before dx is written, perhaps over dy.
void run_backward(const Binding& b, const GroupSizes& sizes) {
  const Data x(b.inputs[BackIn::kX]), dy(b.inputs[BackIn::kDy]);
  const auto gain = input(b.inputs[BackIn::kGain]), rstd = input(b.inputs[BackIn::kRstd]);
  const Result dx(b.outputs[BackOut::kDx]);
  const auto dgain = output(b.outputs[BackOut::kDgain]), dbias = output(b.outputs[BackOut::kDbias]);
  const bool has_parameters = dgain || dbias;
  if (has_parameters && can_sweep(sizes)) {
    return run_sweep<false>(b, {x, dy, gain, {}, rstd, dx, dgain, dbias}, sizes, {});
  }
  if (has_parameters) {
    const ColumnSizes columns{sizes.samples, sizes.width(), 1};
    column_sums(columns, ParameterTerms(x, dy, rstd),
                workspace<double>(b, partial_sums(columns, ParameterTerms::kSums)),
                StoreSums<2>{{dgain, dbias}});
  }
  run_scaled_backward({x, dy, {gain, 1}, rstd, dx, {sizes.samples, sizes.width()}});
}

std::int64_t backward_workspace(const GroupSizes& s) {
  if (can_sweep(s)) return sweep_sums(s) * std::int64_t{sizeof(double)};
  return partial_sums({s.samples, s.width(), 1}, ParameterTerms::kSums) *
         std::int64_t{sizeof(double)};
}

}  // namespace

Prepared prepare_rms_norm(const NodeContext& context) {
  const auto attrs = context.attrs<RmsNormAttrs>();
  const RowSizes sizes = row_sizes(context.input(In::kX).shape, attrs.axes);
  return kernel_of([=](const Binding& b) {
    run_scaled_forward({Data(b.inputs[In::kX]),
                        {input(b.inputs[In::kGain]), 1},
                        {input(b.inputs[In::kBias]), 0},
                        Result(b.outputs[Out::kY]),
                        output(b.outputs[Out::kRstd]),
                        sizes},
                       QuadraticMean{attrs.eps});
  });
}

Prepared prepare_rms_norm_backward(const NodeContext& context) {
  const RowSizes rows =
      row_sizes(context.input(BackIn::kX).shape, context.attrs<RmsNormBackwardAttrs>().axes);
  const GroupSizes sizes{rows.rows, 1, rows.width, 1};
  return kernel_of([=](const Binding& b) { run_backward(b, sizes); }, backward_workspace(sizes));
}

}  // namespace keel::cuda
