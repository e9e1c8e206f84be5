// Reference PowerNorm, one channel after the other.
#include "src/ops/norm/power_norm.h"

#include "backends/reference/kernels/norm/column_sums.h"
#include "backends/reference/kernels/norm/scaled_groups.h"

namespace keel::reference {
namespace {

using In = PowerNormInput;
using Out = PowerNormOutput;
using BackIn = PowerNormBackwardInput;
using BackOut = PowerNormGradient;

// psi2' after training forward t.
double next_psi2(double psi2, double batch, std::int64_t t, const PowerNormAttrs& attrs) {
  if (t < attrs.warmup) {
    psi2 = psi2 * double(t - 1) / double(t) + batch / double(t);
    if (!attrs.is_release()) return psi2;
  }
  return attrs.alpha_f * psi2 + (1 - attrs.alpha_f) * batch;
}

// Writes rstd, rdx and the next state of channel c.
void statistics(const Binding& b, const PowerNormAttrs& attrs, const Kept& kept, Eigen::Index c) {
  const TensorRef& given = b.inputs[In::kSquares];
  const Squares of = given ? given_squares(given, c, attrs.pad_stats)
                           : form_squares(b.inputs[In::kX], kept, c, attrs.pad_stats);
  const double psi2 = vector(b.inputs[In::kPsi2])[c];
  double divisor = psi2, dx_divisor = psi2, gamma = 0, next = psi2;
  if (attrs.training && of.count > 0) {
    const std::int64_t t =
        b.inputs[In::kStep] ? b.inputs[In::kStep].as<std::int32_t>()[0] + std::int64_t{1} : 1;
    const double batch = of.kept / of.count;
    if (t <= attrs.warmup) divisor = batch;
    dx_divisor = attrs.is_release() ? batch : divisor;
    const double counted = attrs.pad_stats ? of.of_all / of.all : batch;
    gamma = counted / (divisor + attrs.eps);
    next = next_psi2(psi2, batch, t, attrs);
  }
  vector(b.outputs[Out::kRstd])[c] = 1 / std::sqrt(divisor + attrs.eps);
  vector(b.outputs[Out::kRdx])[c] = 1 / std::sqrt(dx_divisor + attrs.eps);
  if (!attrs.training) return;
  vector(b.outputs[Out::kGamma])[c] = gamma;
  vector(b.outputs[Out::kNextPsi2])[c] = next;
}

// y = xhat * gain + bias, xhat = x * rstd.
void forward(const Binding& b, const ColumnSizes& sizes, const PowerNormAttrs& attrs) {
  const KeptRows rows = kept_rows(b.inputs[In::kMask], sizes);
  const Kept kept{sizes, rows};
  for (Eigen::Index c = 0; c < sizes.channels; ++c) {
    statistics(b, attrs, kept, c);
    const RowMajor xhat = kept.read(b.inputs[In::kX], c) * vector(b.outputs[Out::kRstd])[c];
    const RowMajor y = xhat.array() * element_or(b.inputs[In::kGain], c, 1) +
                       element_or(b.inputs[In::kBias], c, 0);
    write_channel(b.outputs[Out::kY], sizes, rows, c, y);
  }
  if (!attrs.training) return;
  if (b.outputs[Out::kNextStep]) {
    b.outputs[Out::kNextStep].as<std::int32_t>()[0] =
        b.inputs[In::kStep].as<std::int32_t>()[0] +
        (kept_count(b.inputs[In::kSquares], kept) > 0 ? 1 : 0);
  }
  const double largest = vector(b.outputs[Out::kGamma]).maxCoeff<Eigen::PropagateNaN>();
  b.outputs[Out::kContraction].as<double>()[0] = (1 - attrs.alpha_b) * largest;
  b.outputs[Out::kNuMax].as<double>()[0] =
      vector(b.inputs[In::kNu]).cwiseAbs().maxCoeff<Eigen::PropagateNaN>();
}

// nu' = nu * (1 - (1 - alpha_b) * Gamma) + (1 - alpha_b) * Lambda
double next_nu(const Binding& b, const PowerNormAttrs& attrs, const UncentredSums& of,
               Eigen::Index c) {
  const double nu = vector(b.inputs[BackIn::kNu])[c], gamma = vector(b.inputs[BackIn::kGamma])[c];
  if (of.count == 0) return nu;
  const double mean = attrs.pad_stats ? of.all_dy_xhat / of.all : of.dy_xhat / of.count;
  const double lambda = mean * element_or(b.inputs[BackIn::kGain], c, 1);
  return nu * (1 - (1 - attrs.alpha_b) * gamma) + (1 - attrs.alpha_b) * lambda;
}

// dx = rdx * (g - nu * xhat), g = dy * gain; in evaluation rdx * g.
void backward(const Binding& b, const ColumnSizes& sizes, const PowerNormAttrs& attrs) {
  const KeptRows rows = kept_rows(b.inputs[BackIn::kMask], sizes);
  const Kept kept{sizes, rows};
  for (Eigen::Index c = 0; c < sizes.channels; ++c) {
    const double rstd = vector(b.inputs[BackIn::kRstd])[c];
    const RowMajor xhat = kept.read(b.inputs[BackIn::kX], c) * rstd;
    const RowMajor dy = kept.read(b.inputs[BackIn::kDy], c);
    const TensorRef& given = b.inputs[BackIn::kSums];
    const UncentredSums of = given ? given_uncentred(given, c, attrs.pad_stats)
                                   : form_sums({b.inputs[BackIn::kX], b.inputs[BackIn::kDy], rstd},
                                               kept, c, attrs.pad_stats);
    const double rdx = vector(b.inputs[BackIn::kRdx])[c],
                 gain = element_or(b.inputs[BackIn::kGain], c, 1);
    const double slope = attrs.training ? vector(b.inputs[BackIn::kNu])[c] : 0;
    if (attrs.training) vector(b.outputs[BackOut::kNextNu])[c] = next_nu(b, attrs, of, c);
    write_channel(b.outputs[BackOut::kDx], sizes, rows, c, rdx * (dy * gain - slope * xhat));
    if (b.outputs[BackOut::kDgain]) {
      vector(b.outputs[BackOut::kDgain])[c] = of.dy_xhat;
    }
    if (b.outputs[BackOut::kDbias]) vector(b.outputs[BackOut::kDbias])[c] = of.dy;
  }
}

// Writes 0 to the rows left out, whatever x holds there.
void clear_left_out(const TensorRef& dx, const ColumnSizes& sizes, const TensorRef& mask) {
  if (!mask) return;
  Matrix all = matrix(dx, sizes.outer, sizes.channels);
  for (Eigen::Index row = 0; row < sizes.outer; ++row) {
    if (mask.as<std::uint8_t>()[row] == 0) all.row(row).setZero();
  }
}

// With the scaling in front the rest works on z, which the workspace holds.
void forward_scaled(const Binding& b, const ColumnSizes& sizes, const PowerNormAttrs& attrs) {
  Binding on_z = b;
  on_z.inputs[In::kX].data = b.workspace;
  const RowSizes groups = scaled_groups(b.inputs[In::kX].type.shape, attrs.groups);
  scale_groups({b.inputs[In::kX], on_z.inputs[In::kX], b.outputs[Out::kRowRstd]}, groups,
               attrs.scaling_eps);
  forward(on_z, sizes, attrs);
}

void backward_scaled(const Binding& b, const ColumnSizes& sizes, const PowerNormAttrs& attrs) {
  Binding on_z = b;
  on_z.inputs[BackIn::kX].data = b.workspace;
  const TensorRef &x = b.inputs[BackIn::kX], &row_rstd = b.inputs[BackIn::kRowRstd],
                  &dx = b.outputs[BackOut::kDx];
  const RowSizes groups = scaled_groups(x.type.shape, attrs.groups);
  matrix(on_z.inputs[BackIn::kX], groups.rows, groups.width) =
      vector(row_rstd).asDiagonal() * matrix(x, groups.rows, groups.width);
  backward(on_z, sizes, attrs);
  scale_groups_backward({x, row_rstd, dx, dx}, groups);
  clear_left_out(dx, sizes, b.inputs[BackIn::kMask]);
}

using Run = void (*)(const Binding&, const ColumnSizes&, const PowerNormAttrs&);

Prepared prepare(const Shape& x, const PowerNormAttrs& attrs, Run run) {
  const ColumnSizes sizes = column_sizes(x);
  const std::int64_t z = attrs.is_scaled() ? sizes.outer * sizes.channels : 0;
  return kernel_of([=](const Binding& b) { run(b, sizes, attrs); },
                   z * std::int64_t(sizeof(double)));
}

}  // namespace

Prepared prepare_power_norm(const NodeContext& context) {
  const auto& attrs = context.attrs<PowerNormAttrs>();
  return prepare(context.input(In::kX).shape, attrs, attrs.is_scaled() ? forward_scaled : forward);
}

Prepared prepare_power_norm_backward(const NodeContext& context) {
  const auto& attrs = context.attrs<PowerNormBackwardAttrs>();
  return prepare(context.input(BackIn::kX).shape, attrs,
                 attrs.is_scaled() ? backward_scaled : backward);
}

}  // namespace keel::reference
