// Reference weight normalization: one output unit after the other.
#include "src/ops/norm/weight_norm.h"

#include "backends/reference/kernels/norm/channels.h"

namespace keel::reference {
namespace {

// w = g * v / sqrt(sum of v^2 + eps)
void forward(const Binding& b, const ColumnSizes& sizes, const WeightNormAttrs& attrs) {
  for (Eigen::Index i = 0; i < sizes.channels; ++i) {
    const RowMajor v = channel(b.inputs[0], sizes, i);
    const double norm = std::sqrt(v.squaredNorm() + attrs.eps);
    channel(b.outputs[0], sizes, i) = vector(b.inputs[1])[i] * v / norm;
    vector(b.outputs[1])[i] = 1 / norm;
  }
}

// dg = sum of dw * u;   dv = g * rnorm * (dw - u * dg);   u = v * rnorm
void backward(const Binding& b, const ColumnSizes& sizes) {
  for (Eigen::Index i = 0; i < sizes.channels; ++i) {
    const double g = vector(b.inputs[1])[i], rnorm = vector(b.inputs[2])[i];
    const RowMajor u = channel(b.inputs[0], sizes, i) * rnorm, dw = channel(b.inputs[3], sizes, i);
    const double dg = dw.cwiseProduct(u).sum();
    channel(b.outputs[0], sizes, i) = g * rnorm * (dw - u * dg);
    vector(b.outputs[1])[i] = dg;
  }
}

}  // namespace

Prepared prepare_weight_norm(const NodeContext& context) {
  const auto attrs = context.attrs<WeightNormAttrs>();
  const ColumnSizes sizes = weight_sizes(context.input(0).shape, attrs);
  return kernel_of([=](const Binding& b) { forward(b, sizes, attrs); });
}

Prepared prepare_weight_norm_backward(const NodeContext& context) {
  const ColumnSizes sizes = weight_sizes(context.input(0).shape, context.attrs<WeightNormAttrs>());
  return kernel_of([=](const Binding& b) { backward(b, sizes); });
}

}  // namespace keel::reference
