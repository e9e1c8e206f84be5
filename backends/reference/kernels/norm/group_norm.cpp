// Reference group norm: one group after the other, each seen as a (channels, inner) matrix.
#include "src/ops/norm/group_norm.h"

#include "backends/reference/kernels/norm/centred_row.h"

namespace keel::reference {
namespace {

// Group k of a tensor (samples, groups, channels, inner).
Matrix group(const TensorRef& t, const GroupSizes& s, Eigen::Index k) {
  return {t.as<double>() + k * s.width(), s.channels, s.inner};
}

// What a parameter, or its gradient, holds for the channels of group k.
Vector channels(const TensorRef& t, const GroupSizes& s, Eigen::Index k) {
  return {t.as<double>() + k % s.groups * s.channels, s.channels};
}

// y = (x - mean) * rstd * gain + bias. mean, rstd (samples, groups).
void forward(const Binding& b, const GroupSizes& s, const NormStatistic& statistic) {
  Vector mean = vector(b.outputs[1]), rstd = vector(b.outputs[2]);
  for (Eigen::Index k = 0; k < s.samples * s.groups; ++k) {
    const Matrix x = group(b.inputs[0], s, k);
    Matrix y = group(b.outputs[0], s, k);
    const RowStatistics of_group =
        row_statistics(x.reshaped<Eigen::RowMajor>().transpose(), statistic);
    mean[k] = of_group.mean;
    rstd[k] = of_group.rstd;
    y = (x.array() - mean[k]) * rstd[k];
    if (b.inputs[1]) y.array().colwise() *= channels(b.inputs[1], s, k).array();
    if (b.inputs[2]) y.colwise() += channels(b.inputs[2], s, k);
  }
}

// dx = rstd * (g - mean(g) - xhat * sum(g * xhat) / N * r), g = dy * gain.
void backward(const Binding& b, const GroupSizes& s, const NormStatistic& statistic) {
  const Vector mean = vector(b.inputs[2]), rstd = vector(b.inputs[3]);
  const double n = variance_count(statistic, s.width());
  for (std::size_t j : {1, 2}) {
    if (b.outputs[j]) vector(b.outputs[j]).setZero();
  }
  for (Eigen::Index k = 0; k < s.samples * s.groups; ++k) {
    const Eigen::MatrixXd xhat = (group(b.inputs[0], s, k).array() - mean[k]) * rstd[k];
    Eigen::MatrixXd g = group(b.inputs[4], s, k);
    if (b.outputs[1]) channels(b.outputs[1], s, k) += g.cwiseProduct(xhat).rowwise().sum();
    if (b.outputs[2]) channels(b.outputs[2], s, k) += g.rowwise().sum();
    if (b.inputs[1]) g.array().colwise() *= channels(b.inputs[1], s, k).array();
    const double slope = g.cwiseProduct(xhat).sum() / n * outside_factor(rstd[k], statistic);
    group(b.outputs[0], s, k) = rstd[k] * (g.array() - g.mean() - xhat.array() * slope);
  }
}

}  // namespace

Prepared prepare_group_norm(const NodeContext& context) {
  const auto attrs = context.attrs<GroupNormAttrs>();
  const GroupSizes sizes = group_sizes(context.input(0).shape, attrs.groups);
  return kernel_of([=](const Binding& b) { forward(b, sizes, attrs.statistic()); });
}

Prepared prepare_group_norm_backward(const NodeContext& context) {
  const auto attrs = context.attrs<GroupNormAttrs>();
  const GroupSizes sizes = group_sizes(context.input(0).shape, attrs.groups);
  return kernel_of([=](const Binding& b) { backward(b, sizes, attrs.statistic()); });
}

}  // namespace keel::reference
