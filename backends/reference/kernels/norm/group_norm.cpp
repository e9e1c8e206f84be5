// Reference group norm: one group after the other, each seen as a (channels, inner) matrix.
#include "src/ops/norm/group_norm.h"

#include "backends/reference/kernels/norm/centred_row.h"
#include "src/ops/norm/sizes.h"

namespace keel::reference {
namespace {

using In = GroupNormInput;
using Out = GroupNormOutput;
using BackIn = GroupNormBackwardInput;
using BackOut = GroupNormGradient;

// Group k of a tensor (samples, groups, channels, inner).
Matrix group(const TensorRef& t, const GroupSizes& s, Eigen::Index k) {
  return {t.as<double>() + k * s.width(), s.channels, s.inner};
}

// The values of a parameter, or of its gradient, for the channels of group k.
Vector channels(const TensorRef& t, const GroupSizes& s, Eigen::Index k) {
  return {t.as<double>() + k % s.groups * s.channels, s.channels};
}

// y = (x - mean) * rstd * gain + bias. mean, rstd (samples, groups).
void forward(const Binding& b, const GroupSizes& s, const NormStatistic& statistic) {
  Vector mean = vector(b.outputs[Out::kMean]), rstd = vector(b.outputs[Out::kRstd]);
  for (Eigen::Index k = 0; k < s.samples * s.groups; ++k) {
    const Matrix x = group(b.inputs[In::kX], s, k);
    Matrix y = group(b.outputs[Out::kY], s, k);
    const RowStatistics of_group =
        row_statistics(x.reshaped<Eigen::RowMajor>().transpose(), statistic);
    mean[k] = of_group.mean;
    rstd[k] = of_group.rstd;
    y = (x.array() - mean[k]) * rstd[k];
    if (b.inputs[In::kGain]) y.array().colwise() *= channels(b.inputs[In::kGain], s, k).array();
    if (b.inputs[In::kBias]) y.colwise() += channels(b.inputs[In::kBias], s, k);
  }
}

// dx = rstd * (g - mean(g) - xhat * sum(g * xhat) / N * r), g = dy * gain.
void backward(const Binding& b, const GroupSizes& s, const NormStatistic& statistic) {
  const Vector mean = vector(b.inputs[BackIn::kMean]), rstd = vector(b.inputs[BackIn::kRstd]);
  const double n = variance_count(s.width(), statistic.unbiased);
  for (auto place : {BackOut::kDgain, BackOut::kDbias}) {
    if (b.outputs[place]) vector(b.outputs[place]).setZero();
  }
  for (Eigen::Index k = 0; k < s.samples * s.groups; ++k) {
    const Eigen::MatrixXd xhat = (group(b.inputs[BackIn::kX], s, k).array() - mean[k]) * rstd[k];
    Eigen::MatrixXd g = group(b.inputs[BackIn::kDy], s, k);
    if (b.outputs[BackOut::kDgain]) {
      channels(b.outputs[BackOut::kDgain], s, k) += g.cwiseProduct(xhat).rowwise().sum();
    }
    if (b.outputs[BackOut::kDbias]) channels(b.outputs[BackOut::kDbias], s, k) += g.rowwise().sum();
    if (b.inputs[BackIn::kGain]) {
      g.array().colwise() *= channels(b.inputs[BackIn::kGain], s, k).array();
    }
    const double slope = g.cwiseProduct(xhat).sum() / n * outside_factor(rstd[k], statistic);
    group(b.outputs[BackOut::kDx], s, k) = rstd[k] * (g.array() - g.mean() - xhat.array() * slope);
  }
}

}  // namespace

Prepared prepare_group_norm(const NodeContext& context) {
  const auto attrs = context.attrs<GroupNormAttrs>();
  const GroupSizes sizes = group_sizes(context.input(In::kX).shape, attrs.groups);
  return kernel_of([=](const Binding& b) { forward(b, sizes, attrs.statistic()); });
}

Prepared prepare_group_norm_backward(const NodeContext& context) {
  const auto attrs = context.attrs<GroupNormBackwardAttrs>();
  const GroupSizes sizes = group_sizes(context.input(BackIn::kX).shape, attrs.groups);
  return kernel_of([=](const Binding& b) { backward(b, sizes, attrs.statistic()); });
}

}  // namespace keel::reference
