// Reference weight normalization: one output unit after the other.
#include "src/ops/norm/weight_norm.h"

#include "backends/reference/kernels/norm/channels.h"

namespace keel::reference {
namespace {

using In = WeightNormInput;
using Out = WeightNormOutput;
using BackIn = WeightNormBackwardInput;
using BackOut = WeightNormGradient;

// w = g * v / sqrt(sum of v^2 + eps)
void forward(const Binding& b, const ColumnSizes& sizes, const WeightNormAttrs& attrs) {
  for (Eigen::Index i = 0; i < sizes.channels; ++i) {
    const RowMajor v = channel(b.inputs[In::kV], sizes, i);
    const double norm = std::sqrt(v.squaredNorm() + attrs.eps);
    channel(b.outputs[Out::kW], sizes, i) = vector(b.inputs[In::kG])[i] * v / norm;
    vector(b.outputs[Out::kRstd])[i] = 1 / norm;
  }
}

// dg = sum of dw * u;   dv = g * rstd * (dw - u * dg);   u = v * rstd
void backward(const Binding& b, const ColumnSizes& sizes) {
  for (Eigen::Index i = 0; i < sizes.channels; ++i) {
    const double g = vector(b.inputs[BackIn::kG])[i], rstd = vector(b.inputs[BackIn::kRstd])[i];
    const RowMajor u = channel(b.inputs[BackIn::kV], sizes, i) * rstd,
                   dw = channel(b.inputs[BackIn::kDw], sizes, i);
    const double dg = dw.cwiseProduct(u).sum();
    channel(b.outputs[BackOut::kDv], sizes, i) = g * rstd * (dw - u * dg);
    vector(b.outputs[BackOut::kDg])[i] = dg;
  }
}

}  // namespace

Prepared prepare_weight_norm(const NodeContext& context) {
  const auto attrs = context.attrs<WeightNormAttrs>();
  const ColumnSizes sizes = weight_sizes(context.input(In::kV).shape, attrs);
  return kernel_of([=](const Binding& b) { forward(b, sizes, attrs); });
}

Prepared prepare_weight_norm_backward(const NodeContext& context) {
  const ColumnSizes sizes =
      weight_sizes(context.input(BackIn::kV).shape, context.attrs<WeightNormAttrs>());
  return kernel_of([=](const Binding& b) { backward(b, sizes); });
}

}  // namespace keel::reference
