// Reference PowerNorm, one channel after the other.
#include "src/ops/norm/power_norm.h"

#include "backends/reference/kernels/norm/channels.h"
#include "backends/reference/kernels/norm/scaled_groups.h"

namespace keel::reference {
namespace {

double mean_square(const RowMajor& x) { return x.squaredNorm() / double(x.size()); }

// psi2' after training forward t.
double next_psi2(double psi2, double batch, std::int64_t t, const PowerNormAttrs& attrs) {
  if (t < attrs.warmup) {
    psi2 = psi2 * double(t - 1) / double(t) + batch / double(t);
    if (!attrs.is_release()) return psi2;
  }
  return attrs.alpha_f * psi2 + (1 - attrs.alpha_f) * batch;
}

// The rows that enter the statistics: those kept, and for Gamma and Lambda perhaps all.
struct Rows {
  KeptRows kept, counted;
  Rows(const TensorRef& mask, const ColumnSizes& sizes, bool pad_stats)
      : kept(kept_rows(mask, sizes)),
        counted(pad_stats && !kept.empty() ? kept_rows({}, sizes) : kept) {}
};

// rpsi, rdx and the next state of channel c.
void statistics(const Binding& b, const ColumnSizes& sizes, const PowerNormAttrs& attrs,
                const Rows& rows, Eigen::Index c) {
  const double psi2 = vector(b.inputs[3])[c];
  double divisor = psi2, dx_divisor = psi2, gamma = 0, next = psi2;
  if (attrs.training && !rows.kept.empty()) {
    const std::int64_t t = b.inputs[5] ? b.inputs[5].as<std::int32_t>()[0] + std::int64_t{1} : 1;
    const double batch = mean_square(read_channel(b.inputs[0], sizes, rows.kept, c));
    if (t <= attrs.warmup) divisor = batch;
    dx_divisor = attrs.is_release() ? batch : divisor;
    gamma = mean_square(read_channel(b.inputs[0], sizes, rows.counted, c)) / (divisor + attrs.eps);
    next = next_psi2(psi2, batch, t, attrs);
  }
  vector(b.outputs[1])[c] = 1 / std::sqrt(divisor + attrs.eps);
  vector(b.outputs[2])[c] = 1 / std::sqrt(dx_divisor + attrs.eps);
  if (!attrs.training) return;
  vector(b.outputs[3])[c] = gamma;
  vector(b.outputs[4])[c] = next;
}

// y = xhat * gain + bias, xhat = x * rpsi.
void forward(const Binding& b, const ColumnSizes& sizes, const PowerNormAttrs& attrs) {
  const Rows rows(b.inputs[6], sizes, attrs.pad_stats);
  for (Eigen::Index c = 0; c < sizes.channels; ++c) {
    statistics(b, sizes, attrs, rows, c);
    const RowMajor xhat = read_channel(b.inputs[0], sizes, rows.kept, c) * vector(b.outputs[1])[c];
    const RowMajor y = xhat.array() * element_or(b.inputs[1], c, 1) + element_or(b.inputs[2], c, 0);
    write_channel(b.outputs[0], sizes, rows.kept, c, y);
  }
  if (!attrs.training) return;
  if (b.outputs[5]) {
    b.outputs[5].as<std::int32_t>()[0] =
        b.inputs[5].as<std::int32_t>()[0] + (rows.kept.empty() ? 0 : 1);
  }
  const double largest = vector(b.outputs[3]).maxCoeff<Eigen::PropagateNaN>();
  b.outputs[6].as<double>()[0] = (1 - attrs.alpha_b) * largest;
  b.outputs[7].as<double>()[0] = vector(b.inputs[4]).cwiseAbs().maxCoeff<Eigen::PropagateNaN>();
}

// nu * (1 - (1 - alpha_b) * Gamma) + (1 - alpha_b) * Lambda
double next_nu(const Binding& b, const ColumnSizes& sizes, const PowerNormAttrs& attrs,
               const Rows& rows, Eigen::Index c) {
  const double nu = vector(b.inputs[5])[c], gamma = vector(b.inputs[4])[c];
  if (rows.counted.empty()) return nu;
  const RowMajor xhat = read_channel(b.inputs[0], sizes, rows.counted, c) * vector(b.inputs[2])[c];
  const RowMajor dy = read_channel(b.inputs[6], sizes, rows.counted, c);
  const double lambda = dy.cwiseProduct(xhat).mean() * element_or(b.inputs[1], c, 1);
  return nu * (1 - (1 - attrs.alpha_b) * gamma) + (1 - attrs.alpha_b) * lambda;
}

// dx = rdx * (g - nu * xhat), g = dy * gain; in evaluation rdx * g.
void backward(const Binding& b, const ColumnSizes& sizes, const PowerNormAttrs& attrs) {
  const Rows rows(b.inputs[7], sizes, attrs.pad_stats);
  for (Eigen::Index c = 0; c < sizes.channels; ++c) {
    const RowMajor xhat = read_channel(b.inputs[0], sizes, rows.kept, c) * vector(b.inputs[2])[c];
    const RowMajor dy = read_channel(b.inputs[6], sizes, rows.kept, c);
    const double rdx = vector(b.inputs[3])[c], gain = element_or(b.inputs[1], c, 1);
    const double slope = attrs.training ? vector(b.inputs[5])[c] : 0;
    if (attrs.training) vector(b.outputs[3])[c] = next_nu(b, sizes, attrs, rows, c);
    write_channel(b.outputs[0], sizes, rows.kept, c, rdx * (dy * gain - slope * xhat));
    if (b.outputs[1]) vector(b.outputs[1])[c] = dy.cwiseProduct(xhat).sum();
    if (b.outputs[2]) vector(b.outputs[2])[c] = dy.sum();
  }
}

// 0 in the rows left out, whatever x holds there.
void clear_left_out(const TensorRef& dx, const ColumnSizes& sizes, const TensorRef& mask) {
  if (!mask) return;
  Matrix all = matrix(dx, sizes.outer, sizes.channels);
  for (Eigen::Index row = 0; row < sizes.outer; ++row) {
    if (mask.as<std::uint8_t>()[row] == 0) all.row(row).setZero();
  }
}

// The same with the scaling in front: on z, which the workspace holds.
void forward_scaled(const Binding& b, const ColumnSizes& sizes, const PowerNormAttrs& attrs) {
  Binding on_z = b;
  on_z.inputs[0].data = b.workspace;
  const RowSizes groups = scaled_groups(b.inputs[0].type.shape, attrs.groups);
  scale_groups({b.inputs[0], on_z.inputs[0], b.outputs[8]}, groups, attrs.scaling_eps);
  forward(on_z, sizes, attrs);
}

void backward_scaled(const Binding& b, const ColumnSizes& sizes, const PowerNormAttrs& attrs) {
  Binding on_z = b;
  on_z.inputs[0].data = b.workspace;
  const TensorRef &x = b.inputs[0], &rrms = b.inputs[8], &dx = b.outputs[0];
  const RowSizes groups = scaled_groups(x.type.shape, attrs.groups);
  matrix(on_z.inputs[0], groups.rows, groups.width) =
      vector(rrms).asDiagonal() * matrix(x, groups.rows, groups.width);
  backward(on_z, sizes, attrs);
  scale_groups_backward({x, rrms, dx, dx}, groups);
  clear_left_out(dx, sizes, b.inputs[7]);
}

using Run = void (*)(const Binding&, const ColumnSizes&, const PowerNormAttrs&);

Prepared prepare(const NodeContext& context, Run plain, Run scaled) {
  const auto attrs = context.attrs<PowerNormAttrs>();
  const ColumnSizes sizes = column_sizes(context.input(0).shape);
  const Run run = attrs.is_scaled() ? scaled : plain;
  const std::int64_t z = attrs.is_scaled() ? sizes.outer * sizes.channels : 0;
  return kernel_of([=](const Binding& b) { run(b, sizes, attrs); },
                   z * std::int64_t(sizeof(double)));
}

}  // namespace

Prepared prepare_power_norm(const NodeContext& context) {
  return prepare(context, forward, forward_scaled);
}

Prepared prepare_power_norm_backward(const NodeContext& context) {
  return prepare(context, backward, backward_scaled);
}

}  // namespace keel::reference
