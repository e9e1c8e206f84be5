// Reference batch norm, one channel after the other.
#include "src/ops/norm/batch_norm.h"

#include "backends/reference/kernels/norm/column_sums.h"

namespace keel::reference {
namespace {

using In = BatchNormInput;
using Out = BatchNormOutput;
using BackIn = BatchNormBackwardInput;
using BackOut = BatchNormGradient;

struct BatchSampler {
  BatchNormAttrs attrs;
  ColumnSizes sizes;

  // The divisor of the sum of squares of a channel.
  template <class Sums>
  double count(const Sums& of, bool unbiased) const {
    return variance_count(std::int64_t(attrs.counts_padding() ? of.all : of.count), unbiased);
  }
};

struct Statistics {
  double mean, variance;
};

// Returns the batch's statistics and writes the running ones that follow from them.
Statistics train(const Binding& b, const BatchSampler& plan, const KeptRows& rows, Eigen::Index c) {
  const BatchNormAttrs& attrs = plan.attrs;
  const Moments of = moments_of(b.inputs[In::kMoments], b.inputs[In::kX], {plan.sizes, rows}, c);
  Statistics batch{vector(b.inputs[In::kRunningMean])[c], vector(b.inputs[In::kRunningVar])[c]},
      next = batch;
  if (of.count > 0) {
    batch.mean = of.mean;
    batch.variance = of.squares / plan.count(of, attrs.unbiased);
    const auto blend = [&](double& state, double value) {
      state = attrs.keep * state + (1 - attrs.keep) * value;
    };
    blend(next.mean, batch.mean);
    blend(next.variance, of.squares / plan.count(of, attrs.running_unbiased));
  }
  vector(b.outputs[Out::kNextRunningMean])[c] = next.mean;
  vector(b.outputs[Out::kNextRunningVar])[c] = next.variance;
  return batch;
}

// y = (x - mean) * rstd * gain + bias, with the batch's or the running statistics.
void forward(const Binding& b, const BatchSampler& plan) {
  const KeptRows rows = kept_rows(b.inputs[In::kMask], plan.sizes);
  for (Eigen::Index c = 0; c < plan.sizes.channels; ++c) {
    const Statistics of = plan.attrs.training ? train(b, plan, rows, c)
                                              : Statistics{vector(b.inputs[In::kRunningMean])[c],
                                                           vector(b.inputs[In::kRunningVar])[c]};
    const double rstd = 1 / std::sqrt(of.variance + plan.attrs.eps);
    const double bias = element_or(b.inputs[In::kBias], c, 0);
    const RowMajor x = read_channel(b.inputs[In::kX], plan.sizes, rows, c);
    auto y = channel(b.outputs[Out::kY], plan.sizes, c);
    y.setConstant(plan.attrs.counts_padding() ? bias : 0);
    y(rows, Eigen::all) =
        (x.array() - of.mean) * rstd * element_or(b.inputs[In::kGain], c, 1) + bias;
    vector(b.outputs[Out::kMean])[c] = of.mean;
    vector(b.outputs[Out::kRstd])[c] = rstd;
  }
}

CentredSums sums_of(const Binding& b, const BatchSampler& plan, const KeptRows& rows,
                    Eigen::Index c) {
  const TensorRef& given = b.inputs[BackIn::kSums];
  if (given) return given_centred(given, c, plan.attrs.counts_padding());
  return form_sums({b.inputs[BackIn::kX], b.inputs[BackIn::kDy], vector(b.inputs[BackIn::kMean])[c],
                    vector(b.inputs[BackIn::kRstd])[c]},
                   {plan.sizes, rows}, c);
}

// The gradient by a channel's mean and by its s of the penalty on what lies between these and the
// running statistics.
Statistics penalty_gradient(const Binding& b, const BatchNormAttrs& attrs, Eigen::Index c) {
  if (!attrs.has_penalty()) return {0, 0};
  const double mean = vector(b.inputs[BackIn::kMean])[c],
               deviation = 1 / vector(b.inputs[BackIn::kRstd])[c];
  const double running_mean = vector(b.inputs[BackIn::kNextRunningMean])[c],
               running = std::sqrt(vector(b.inputs[BackIn::kNextRunningVar])[c] + attrs.eps);
  return {2 * attrs.mean_penalty * (mean - running_mean),
          2 * attrs.deviation_penalty * (deviation - running)};
}

// g = dy * gain. Training: dx = rstd * (g - mean(g) - xhat * sum(g * xhat) / N), and the gradient
// of a penalty; evaluation: dx = rstd * g.
void backward(const Binding& b, const BatchSampler& plan) {
  const KeptRows rows = kept_rows(b.inputs[BackIn::kMask], plan.sizes);
  for (Eigen::Index c = 0; c < plan.sizes.channels; ++c) {
    const double mean = vector(b.inputs[BackIn::kMean])[c],
                 rstd = vector(b.inputs[BackIn::kRstd])[c];
    const Eigen::ArrayXXd x = read_channel(b.inputs[BackIn::kX], plan.sizes, rows, c).array();
    const Eigen::ArrayXXd dy = read_channel(b.inputs[BackIn::kDy], plan.sizes, rows, c).array();
    const double gain = element_or(b.inputs[BackIn::kGain], c, 1);
    const Eigen::ArrayXXd xhat = (x - mean) * rstd, g = dy * gain;
    const CentredSums of = sums_of(b, plan, rows, c);
    Eigen::ArrayXXd dx = g * rstd;
    if (plan.attrs.training && of.count > 0) {
      const double mean_g = gain * of.dy / of.count;
      const double slope = gain * of.dy_xhat / plan.count(of, plan.attrs.unbiased);
      dx = rstd * (g - mean_g - xhat * slope);
      const auto [by_mean, by_deviation] = penalty_gradient(b, plan.attrs, c);
      dx += by_mean / of.count + by_deviation / plan.count(of, plan.attrs.unbiased) * xhat;
    }
    if (b.outputs[BackOut::kDgain]) vector(b.outputs[BackOut::kDgain])[c] = of.dy_xhat;
    if (b.outputs[BackOut::kDbias]) {
      const bool counts = plan.attrs.counts_padding();
      vector(b.outputs[BackOut::kDbias])[c] = counts ? of.dy + of.padding_dy : of.dy;
    }
    write_channel(b.outputs[BackOut::kDx], plan.sizes, rows, c, dx.matrix());  // perhaps over dy
  }
}

}  // namespace

Prepared prepare_batch_norm(const NodeContext& context) {
  const BatchSampler plan{context.attrs<BatchNormAttrs>(),
                          column_sizes(context.input(In::kX).shape)};
  return kernel_of([=](const Binding& b) { forward(b, plan); });
}

Prepared prepare_batch_norm_backward(const NodeContext& context) {
  const BatchSampler plan{context.attrs<BatchNormBackwardAttrs>(),
                          column_sizes(context.input(BackIn::kX).shape)};
  return kernel_of([=](const Binding& b) { backward(b, plan); });
}

}  // namespace keel::reference
