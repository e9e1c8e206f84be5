// Batch norm normalizes a feature by its mean and variance over the batch's rows.
#include "backends/cuda/kernels/kernels.h"
#include "backends/cuda/kernels/norm/centred_columns.cuh"
#include "src/ops/norm/batch_norm.h"

namespace keel::cuda {
namespace {

using In = BatchNormInput;
using Out = BatchNormOutput;
using BackIn = BatchNormBackwardInput;
using BackOut = BatchNormGradient;

struct Rules {
  double eps, keep;
  bool unbiased, running_unbiased, training, counts_padding;

  explicit Rules(const BatchNormAttrs& a)
      : eps(a.eps),
        keep(a.keep),
        unbiased(a.unbiased),
        running_unbiased(a.running_unbiased),
        training(a.training),
        counts_padding(a.counts_padding()) {}

  // The divisor of a sum of squares.
  template <class Sums>
  __device__ double divisor(const Sums& of, bool is_unbiased) const {
    return variance_count(std::int64_t(counts_padding ? of.all : of.count), is_unbiased);
  }
};

// Writes the batch's statistics and the running ones that follow, or in evaluation the running ones
// as they are.
struct Statistics {
  Rules rules;
  Global<const float> running_mean, running_var;
  Global<float> mean, rstd, next_mean, next_var;
  Global<double> exact_mean;

  __device__ void prefetch(std::int64_t c) const {
    running_mean.prefetch(c);
    running_var.prefetch(c);
  }
  __device__ void operator()(std::int64_t c, Moments batch) const {
    const double old_mean = running_mean[c], old_var = running_var[c];
    const bool is_empty = batch.count == 0;
    const double variance = batch.squares / rules.divisor(batch, rules.unbiased);
    const double running = batch.squares / rules.divisor(batch, rules.running_unbiased);
    write(c, is_empty ? old_mean : batch.mean, is_empty ? old_var : variance);
    next_mean[c] = float(is_empty ? old_mean : blend(old_mean, batch.mean));
    next_var[c] = float(is_empty ? old_var : blend(old_var, running));
  }
  __device__ void operator()(std::int64_t c) const { write(c, running_mean[c], running_var[c]); }

 private:
  __device__ double blend(double old, double batch) const {
    return rules.keep * old + (1 - rules.keep) * batch;
  }
  __device__ void write(std::int64_t c, double m, double variance) const {
    exact_mean[c] = m;
    mean[c] = float(m);
    rstd[c] = float(1 / sqrt(variance + rules.eps));
  }
};

void run_forward(const Binding& b, const ColumnSizes& sizes, const BatchNormAttrs& attrs) {
  const Statistics statistics{Rules(attrs),
                              input(b.inputs[In::kRunningMean]),
                              input(b.inputs[In::kRunningVar]),
                              output(b.outputs[Out::kMean]),
                              output(b.outputs[Out::kRstd]),
                              output(b.outputs[Out::kNextRunningMean]),
                              output(b.outputs[Out::kNextRunningVar]),
                              ColumnScratch(b, sizes, MomentTerms::kSums).vector(0)};
  run_centred<In, Out>(b, sizes, attrs.training, statistics, {{}, {}, attrs.counts_padding()});
}

// The gradient of the penalty on what lies between the statistics of the batch and the running
// ones, by a channel's mean and by its deviation, each times the deviation. Without a penalty there
// are no running ones.
struct Penalty {
  double eps, of_mean, of_deviation;
  Global<const float> mean, rstd, running_mean, running_var;

  struct Gradient {
    double by_mean, by_deviation;
  };
  __device__ void prefetch(std::int64_t c) const {
    if (!running_mean) return;
    mean.prefetch(c);
    running_mean.prefetch(c);
    running_var.prefetch(c);
  }
  __device__ Gradient operator()(std::int64_t c) const {
    if (!running_mean) return {0, 0};
    const double deviation = 1 / double(rstd[c]), running = sqrt(running_var[c] + eps);
    return {2 * of_mean * (double(mean[c]) - running_mean[c]) * deviation,
            2 * of_deviation * (deviation - running) * deviation};
  }
};

// Writes dgain, dbias and what dx needs of a channel.
struct Gradients {
  Rules rules;
  Penalty penalty;
  Global<const float> gain;
  Global<float> dgain, dbias;
  ChannelSlopes to;

  __device__ void prefetch(std::int64_t c) const {
    gain.prefetch(c);
    penalty.prefetch(c);
  }
  __device__ void operator()(std::int64_t c, GradientSums sums) const {
    const double low = sums.low(rules.training), scale = gain.get(c, 1);
    const double dy_xhat = sums.dy_xhat - low * sums.dy;
    if (dgain) dgain[c] = float(dy_xhat);
    if (dbias) dbias[c] = float(sums.dy + (rules.counts_padding ? sums.padding_dy : 0));
    const bool centres = rules.training && sums.count > 0;
    const auto [by_mean, by_deviation] = penalty(c);
    to.low[c] = low;
    to.mean_g[c] = centres ? (scale * sums.dy - by_mean) / sums.count : 0;
    to.slope[c] =
        centres ? (scale * dy_xhat - by_deviation) / rules.divisor(sums, rules.unbiased) : 0;
  }
};

void run_backward(const Binding& b, const ColumnSizes& sizes, const BatchNormBackwardAttrs& attrs) {
  const ColumnScratch scratch(b, sizes, GradientTerms::kSums);
  const CentredColumns tensors = centred_tensors<BackIn, BackOut>(b, attrs.training);
  const auto running = [&](int place) {
    return attrs.has_penalty() ? input(b.inputs[std::size_t(place)]) : Global<const float>{};
  };
  const Penalty penalty{attrs.eps,
                        attrs.mean_penalty,
                        attrs.deviation_penalty,
                        tensors.mean,
                        tensors.rstd,
                        running(BackIn::kNextRunningMean),
                        running(BackIn::kNextRunningVar)};
  const Gradients gradients{Rules(attrs),
                            penalty,
                            tensors.gain,
                            output(b.outputs[BackOut::kDgain]),
                            output(b.outputs[BackOut::kDbias]),
                            ChannelSlopes(scratch)};
  run_centred_columns_backward(sizes, scratch, tensors, gradients);
}

}  // namespace

Prepared prepare_batch_norm(const NodeContext& context) {
  return prepare_columns<BatchNormAttrs>(context, MomentTerms::kSums, 1, run_forward);
}
Prepared prepare_batch_norm_backward(const NodeContext& context) {
  return prepare_columns<BatchNormBackwardAttrs>(context, GradientTerms::kSums, 3, run_backward);
}

}  // namespace keel::cuda
