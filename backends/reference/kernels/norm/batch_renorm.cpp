// Reference batch renormalization: one channel after the other.
#include "src/ops/norm/batch_renorm.h"

#include <algorithm>

#include "backends/reference/kernels/norm/channels.h"

namespace keel::reference {
namespace {

// One channel's mean, deviation s, r and d.
struct Statistics {
  double mean, s, r, d;
};

// Of the batch; running_mean' and running_std' are written.
Statistics train(const Binding& b, const Eigen::ArrayXXd& x, const BatchRenormAttrs& attrs,
                 Eigen::Index c) {
  const double running_mean = vector(b.inputs[3])[c], running_std = vector(b.inputs[4])[c];
  const RenormLimits limits = renorm_limits(attrs, *b.inputs[5].as<std::int32_t>());
  double mean = running_mean, s = running_std;
  if (x.size() > 0) {
    mean = x(0, 0) + (x - x(0, 0)).mean();  // exact for a constant channel
    s = std::sqrt((x - mean).square().mean() + attrs.eps);
  }
  vector(b.outputs[5])[c] = running_mean + attrs.rate * (mean - running_mean);
  vector(b.outputs[6])[c] = running_std + attrs.rate * (s - running_std);
  return {mean, s, std::clamp(s / running_std, 1 / limits.r_max, limits.r_max),
          std::clamp((mean - running_mean) / running_std, -limits.d_max, limits.d_max)};
}

// y = ((x - mean) / s * r + d) * gain + bias
void forward(const Binding& b, const ColumnSizes& sizes, const BatchRenormAttrs& attrs) {
  const KeptRows rows = kept_rows(b.inputs[6], sizes);
  for (Eigen::Index c = 0; c < sizes.channels; ++c) {
    const Eigen::ArrayXXd x = read_channel(b.inputs[0], sizes, rows, c).array();
    const Statistics of = attrs.training
                              ? train(b, x, attrs, c)
                              : Statistics{vector(b.inputs[3])[c], vector(b.inputs[4])[c], 1, 0};
    const Eigen::ArrayXXd out = (x - of.mean) / of.s * of.r + of.d;
    write_channel(b.outputs[0], sizes, rows, c,
                  (out * element_or(b.inputs[1], c, 1) + element_or(b.inputs[2], c, 0)).matrix());
    vector(b.outputs[1])[c] = of.mean;
    vector(b.outputs[2])[c] = 1 / of.s;
    vector(b.outputs[3])[c] = of.r;
    vector(b.outputs[4])[c] = of.d;
  }
  if (!attrs.training) return;
  *b.outputs[7].as<std::int32_t>() = *b.inputs[5].as<std::int32_t>() + (rows.empty() ? 0 : 1);
}

// g = dy * gain. Training: dx = r * rstd * (g - mean(g) - xhat * mean(g * xhat));
// evaluation: dx = rstd * g.
void backward(const Binding& b, const ColumnSizes& sizes, const BatchRenormAttrs& attrs) {
  const KeptRows rows = kept_rows(b.inputs[7], sizes);
  for (Eigen::Index c = 0; c < sizes.channels; ++c) {
    const double mean = vector(b.inputs[2])[c], rstd = vector(b.inputs[3])[c];
    const double r = vector(b.inputs[4])[c], d = vector(b.inputs[5])[c];
    const Eigen::ArrayXXd xhat = (read_channel(b.inputs[0], sizes, rows, c).array() - mean) * rstd;
    const Eigen::ArrayXXd dy = read_channel(b.inputs[6], sizes, rows, c).array();
    const Eigen::ArrayXXd g = dy * element_or(b.inputs[1], c, 1);
    Eigen::ArrayXXd dx = g * rstd;
    if (attrs.training && g.size() > 0) {
      dx = r * rstd * (g - g.mean() - xhat * (g * xhat).mean());
    }
    write_channel(b.outputs[0], sizes, rows, c, dx.matrix());
    if (b.outputs[1]) vector(b.outputs[1])[c] = (dy * (xhat * r + d)).sum();
    if (b.outputs[2]) vector(b.outputs[2])[c] = dy.sum();
  }
}

}  // namespace

Prepared prepare_batch_renorm(const NodeContext& context) {
  const auto attrs = context.attrs<BatchRenormAttrs>();
  const ColumnSizes sizes = column_sizes(context.input(0).shape);
  return kernel_of([=](const Binding& b) { forward(b, sizes, attrs); });
}

Prepared prepare_batch_renorm_backward(const NodeContext& context) {
  const auto attrs = context.attrs<BatchRenormAttrs>();
  const ColumnSizes sizes = column_sizes(context.input(0).shape);
  return kernel_of([=](const Binding& b) { backward(b, sizes, attrs); });
}

}  // namespace keel::reference
