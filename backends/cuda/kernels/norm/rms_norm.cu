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

// w = offset + gain, which multiplies xhat.
__global__ void add_offset(Global<const float> gain, Global<float> w, std::int64_t n,
                           double offset) {
  const std::int64_t c = grid_thread();
  if (c < n) w[c] = float(double(gain[c]) + offset);
}

// The bytes of a workspace before that of w, and with it; there is none where the offset is 0.
std::int64_t with_offset(const NodeContext& context, int gain, double offset, std::int64_t before) {
  if (offset == 0 || !context.has(gain)) return before;
  return aligned_bytes(before) + context.input(gain).bytes();
}

Global<const float> weights(const Binding& b, const TensorRef& gain, double offset,
                            std::int64_t before) {
  if (!gain || offset == 0) return input(gain);
  const std::int64_t n = gain.elements();
  const auto w = workspace(b, n, aligned_bytes(before));
  launch(add_offset, one_thread_each(n), input(gain), w, n, offset);
  return w;
}

// dgain and dbias of rows that cannot be swept are formed before dx is written, perhaps over dy.
void run_backward(const Binding& b, const GroupSizes& sizes, Global<const float> gain) {
  const Data x(b.inputs[BackIn::kX]), dy(b.inputs[BackIn::kDy]);
  const auto rstd = input(b.inputs[BackIn::kRstd]);
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
  const auto run = [=](const Binding& b) {
    run_scaled_forward({Data(b.inputs[In::kX]),
                        {weights(b, b.inputs[In::kGain], attrs.offset, 0), 1},
                        {input(b.inputs[In::kBias]), 0},
                        Result(b.outputs[Out::kY]),
                        output(b.outputs[Out::kRstd]),
                        sizes},
                       QuadraticMean{attrs.eps});
  };
  return kernel_of(run, with_offset(context, In::kGain, attrs.offset, 0));
}

Prepared prepare_rms_norm_backward(const NodeContext& context) {
  const auto attrs = context.attrs<RmsNormBackwardAttrs>();
  const RowSizes rows = row_sizes(context.input(BackIn::kX).shape, attrs.axes);
  const GroupSizes sizes{rows.rows, 1, rows.width, 1};
  const std::int64_t of_sums = backward_workspace(sizes);
  const auto run = [=](const Binding& b) {
    run_backward(b, sizes, weights(b, b.inputs[BackIn::kGain], attrs.offset, of_sums));
  };
  return kernel_of(run, with_offset(context, BackIn::kGain, attrs.offset, of_sums));
}

}  // namespace keel::cuda
