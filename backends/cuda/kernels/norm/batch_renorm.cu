// Batch renormalization moves the output of batch norm to where the running
// statistics would have put it.
#include "backends/cuda/kernels/kernels.h"
#include "backends/cuda/kernels/norm/centred_columns.cuh"
#include "src/ops/norm/batch_renorm.h"

namespace keel::cuda {
namespace {

using In = BatchRenormInput;
using Out = BatchRenormOutput;
using BackIn = BatchRenormBackwardInput;
using BackOut = BatchRenormGradient;

__device__ double clamp(double value, double least, double most) {
  return value < least ? least : value > most ? most : value;
}

struct Statistics {
  BatchRenormAttrs attrs;
  Global<const float> running_mean, running_std;
  Global<const std::int32_t> step;
  Global<float> mean, rstd, r, d, next_mean, next_std;
  Global<std::int32_t> next_step;
  Global<double> exact_mean;

  __device__ void prefetch(std::int64_t c) const {
    running_mean.prefetch(c);
    running_std.prefetch(c);
  }
  __device__ void operator()(std::int64_t c, Moments batch) const {
    const double old_mean = running_mean[c], old_std = running_std[c];
    const bool is_empty = batch.count == 0;
    const double m = is_empty ? old_mean : batch.mean;
    const double s = is_empty ? old_std : sqrt(batch.squares / batch.count + attrs.eps);
    const RenormLimits limits = renorm_limits(attrs, step[0]);
    write(c, m, s);
    r[c] = float(clamp(s / old_std, 1 / limits.r_max, limits.r_max));
    d[c] = float(clamp((m - old_mean) / old_std, -limits.d_max, limits.d_max));
    next_mean[c] = float(old_mean + attrs.rate * (m - old_mean));
    next_std[c] = float(old_std + attrs.rate * (s - old_std));
    if (c == 0) next_step[0] = step[0] + (is_empty ? 0 : 1);
  }
  __device__ void operator()(std::int64_t c) const {
    write(c, running_mean[c], running_std[c]);
    r[c] = 1;
    d[c] = 0;
  }

 private:
  __device__ void write(std::int64_t c, double m, double s) const {
    exact_mean[c] = m;
    mean[c] = float(m);
    rstd[c] = float(1 / s);
  }
};

void run_forward(const Binding& b, const ColumnSizes& sizes, const BatchRenormAttrs& attrs) {
  const Statistics statistics{attrs,
                              input(b.inputs[In::kRunningMean]),
                              input(b.inputs[In::kRunningStd]),
                              global<const std::int32_t>(b.inputs[In::kStep]),
                              output(b.outputs[Out::kMean]),
                              output(b.outputs[Out::kRstd]),
                              output(b.outputs[Out::kR]),
                              output(b.outputs[Out::kD]),
                              output(b.outputs[Out::kNextRunningMean]),
                              output(b.outputs[Out::kNextRunningStd]),
                              global<std::int32_t>(b.outputs[Out::kNextStep]),
                              ColumnScratch(b, sizes, MomentTerms::kSums).vector(0)};
  run_centred<In, Out>(b, sizes, attrs.training, statistics, {statistics.r, statistics.d});
}

// Writes dgain, dbias and what dx needs of a channel.
struct Gradients {
  bool training;
  Global<const float> r, d, gain;
  Global<float> dgain, dbias;
  ChannelSlopes to;

  __device__ void prefetch(std::int64_t c) const {
    r.prefetch(c);
    d.prefetch(c);
    gain.prefetch(c);
  }
  __device__ void operator()(std::int64_t c, GradientSums sums) const {
    const double low = sums.low(training), scale = gain.get(c, 1);
    const double dy_xhat = sums.dy_xhat - low * sums.dy;
    if (dgain) dgain[c] = float(dy_xhat * r[c] + sums.dy * d[c]);
    if (dbias) dbias[c] = float(sums.dy);
    to.low[c] = low;
    to.mean_g[c] = sums.count > 0 ? scale * sums.dy / sums.count : 0;
    to.slope[c] = sums.count > 0 ? scale * dy_xhat / sums.count : 0;
  }
};

void run_backward(const Binding& b, const ColumnSizes& sizes,
                  const BatchRenormBackwardAttrs& attrs) {
  const ColumnScratch scratch(b, sizes, GradientTerms::kSums);
  CentredColumns tensors = centred_tensors<BackIn, BackOut>(b, attrs.training);
  tensors.r = input(b.inputs[BackIn::kR]);
  const Gradients gradients{attrs.training,
                            tensors.r,
                            input(b.inputs[BackIn::kD]),
                            tensors.gain,
                            output(b.outputs[BackOut::kDgain]),
                            output(b.outputs[BackOut::kDbias]),
                            ChannelSlopes(scratch)};
  run_centred_columns_backward(sizes, scratch, tensors, gradients);
}

}  // namespace

Prepared prepare_batch_renorm(const NodeContext& context) {
  return prepare_columns<BatchRenormAttrs>(context, MomentTerms::kSums, 1, run_forward);
}
Prepared prepare_batch_renorm_backward(const NodeContext& context) {
  return prepare_columns<BatchRenormBackwardAttrs>(context, GradientTerms::kSums, 3, run_backward);
}

}  // namespace keel::cuda
