// Reference batch renormalization: one channel after the other.
#include "src/ops/norm/batch_renorm.h"

#include <algorithm>

#include "backends/reference/kernels/norm/column_sums.h"

namespace keel::reference {
namespace {

using In = BatchRenormInput;
using Out = BatchRenormOutput;
using BackIn = BatchRenormBackwardInput;
using BackOut = BatchRenormGradient;

// One channel's mean, deviation s, r and d.
struct Statistics {
  double mean, s, r, d;
};

// Returns those of the batch and writes running_mean' and running_std'.
Statistics train(const Binding& b, const Moments& of, const BatchRenormAttrs& attrs,
                 Eigen::Index c) {
  const double running_mean = vector(b.inputs[In::kRunningMean])[c],
               running_std = vector(b.inputs[In::kRunningStd])[c];
  const RenormLimits limits = renorm_limits(attrs, *b.inputs[In::kStep].as<std::int32_t>());
  double mean = running_mean, s = running_std;
  if (of.count > 0) {
    mean = of.mean;
    s = std::sqrt(of.squares / of.count + attrs.eps);
  }
  vector(b.outputs[Out::kNextRunningMean])[c] = running_mean + attrs.rate * (mean - running_mean);
  vector(b.outputs[Out::kNextRunningStd])[c] = running_std + attrs.rate * (s - running_std);
  return {mean, s, std::clamp(s / running_std, 1 / limits.r_max, limits.r_max),
          std::clamp((mean - running_mean) / running_std, -limits.d_max, limits.d_max)};
}

// y = ((x - mean) / s * r + d) * gain + bias
void forward(const Binding& b, const ColumnSizes& sizes, const BatchRenormAttrs& attrs) {
  const KeptRows rows = kept_rows(b.inputs[In::kMask], sizes);
  const Kept kept{sizes, rows};
  const auto moments = [&](Eigen::Index c) {
    return moments_of(b.inputs[In::kMoments], b.inputs[In::kX], kept, c);
  };
  for (Eigen::Index c = 0; c < sizes.channels; ++c) {
    const Eigen::ArrayXXd x = read_channel(b.inputs[In::kX], sizes, rows, c).array();
    const Statistics of = attrs.training ? train(b, moments(c), attrs, c)
                                         : Statistics{vector(b.inputs[In::kRunningMean])[c],
                                                      vector(b.inputs[In::kRunningStd])[c], 1, 0};
    const Eigen::ArrayXXd out = (x - of.mean) / of.s * of.r + of.d;
    write_channel(
        b.outputs[Out::kY], sizes, rows, c,
        (out * element_or(b.inputs[In::kGain], c, 1) + element_or(b.inputs[In::kBias], c, 0))
            .matrix());
    vector(b.outputs[Out::kMean])[c] = of.mean;
    vector(b.outputs[Out::kRstd])[c] = 1 / of.s;
    vector(b.outputs[Out::kR])[c] = of.r;
    vector(b.outputs[Out::kD])[c] = of.d;
  }
  if (!attrs.training) return;
  *b.outputs[Out::kNextStep].as<std::int32_t>() =
      *b.inputs[In::kStep].as<std::int32_t>() +
      (kept_count(b.inputs[In::kMoments], kept) > 0 ? 1 : 0);
}

// g = dy * gain. Training: dx = r * rstd * (g - mean(g) - xhat * mean(g * xhat));
// evaluation: dx = rstd * g.
void backward(const Binding& b, const ColumnSizes& sizes, const BatchRenormAttrs& attrs) {
  const KeptRows rows = kept_rows(b.inputs[BackIn::kMask], sizes);
  for (Eigen::Index c = 0; c < sizes.channels; ++c) {
    const double mean = vector(b.inputs[BackIn::kMean])[c],
                 rstd = vector(b.inputs[BackIn::kRstd])[c];
    const double r = vector(b.inputs[BackIn::kR])[c], d = vector(b.inputs[BackIn::kD])[c];
    const Eigen::ArrayXXd xhat =
        (read_channel(b.inputs[BackIn::kX], sizes, rows, c).array() - mean) * rstd;
    const Eigen::ArrayXXd dy = read_channel(b.inputs[BackIn::kDy], sizes, rows, c).array();
    const double gain = element_or(b.inputs[BackIn::kGain], c, 1);
    const Eigen::ArrayXXd g = dy * gain;
    const TensorRef& given = b.inputs[BackIn::kSums];
    const CentredSums of =
        given ? given_centred(given, c, false)
              : form_sums({b.inputs[BackIn::kX], b.inputs[BackIn::kDy], mean, rstd}, {sizes, rows},
                          c);
    Eigen::ArrayXXd dx = g * rstd;
    if (attrs.training && of.count > 0) {
      const double mean_g = gain * of.dy / of.count, slope = gain * of.dy_xhat / of.count;
      dx = r * rstd * (g - mean_g - xhat * slope);
    }
    write_channel(b.outputs[BackOut::kDx], sizes, rows, c, dx.matrix());
    if (b.outputs[BackOut::kDgain]) {
      vector(b.outputs[BackOut::kDgain])[c] = of.dy_xhat * r + of.dy * d;
    }
    if (b.outputs[BackOut::kDbias]) vector(b.outputs[BackOut::kDbias])[c] = of.dy;
  }
}

}  // namespace

Prepared prepare_batch_renorm(const NodeContext& context) {
  const auto attrs = context.attrs<BatchRenormAttrs>();
  const ColumnSizes sizes = column_sizes(context.input(In::kX).shape);
  return kernel_of([=](const Binding& b) { forward(b, sizes, attrs); });
}

Prepared prepare_batch_renorm_backward(const NodeContext& context) {
  const auto attrs = context.attrs<BatchRenormBackwardAttrs>();
  const ColumnSizes sizes = column_sizes(context.input(BackIn::kX).shape);
  return kernel_of([=](const Binding& b) { backward(b, sizes, attrs); });
}

}  // namespace keel::reference
