// Reference PN-V, one channel after the other.
#include "src/ops/norm/pn_v.h"

#include "backends/reference/kernels/norm/channels.h"

namespace keel::reference {
namespace {

// y = x * rpsi * gain + bias, rpsi of the batch's quadratic mean or of the running one.
void forward(const Binding& b, const ColumnSizes& sizes, const PnVAttrs& attrs) {
  const KeptRows rows = kept_rows(b.inputs[4], sizes);
  for (Eigen::Index c = 0; c < sizes.channels; ++c) {
    const RowMajor x = read_channel(b.inputs[0], sizes, rows, c);
    double psi2 = vector(b.inputs[3])[c];
    if (attrs.training && x.size() > 0) {
      const double running = psi2;
      psi2 = x.squaredNorm() / double(x.size());
      vector(b.outputs[2])[c] = attrs.keep * running + (1 - attrs.keep) * psi2;
    } else if (attrs.training) {
      vector(b.outputs[2])[c] = psi2;
    }
    const double rpsi = 1 / std::sqrt(psi2 + attrs.eps);
    const RowMajor y =
        x.array() * rpsi * element_or(b.inputs[1], c, 1) + element_or(b.inputs[2], c, 0);
    write_channel(b.outputs[0], sizes, rows, c, y);
    vector(b.outputs[1])[c] = rpsi;
  }
}

// g = dy * gain. Training: dx = rpsi * (g - xhat * mean(g * xhat)); evaluation: dx = rpsi * g.
void backward(const Binding& b, const ColumnSizes& sizes, const PnVAttrs& attrs) {
  const KeptRows rows = kept_rows(b.inputs[4], sizes);
  for (Eigen::Index c = 0; c < sizes.channels; ++c) {
    const double rpsi = vector(b.inputs[2])[c];
    const RowMajor xhat = read_channel(b.inputs[0], sizes, rows, c) * rpsi;
    const RowMajor dy = read_channel(b.inputs[3], sizes, rows, c);
    const RowMajor g = dy * element_or(b.inputs[1], c, 1);
    const bool has_slope = attrs.training && xhat.size() > 0;
    const double slope = has_slope ? g.cwiseProduct(xhat).mean() : 0;
    write_channel(b.outputs[0], sizes, rows, c, rpsi * (g - xhat * slope));
    if (b.outputs[1]) vector(b.outputs[1])[c] = dy.cwiseProduct(xhat).sum();
    if (b.outputs[2]) vector(b.outputs[2])[c] = dy.sum();
  }
}

}  // namespace

Prepared prepare_pn_v(const NodeContext& context) {
  const auto attrs = context.attrs<PnVAttrs>();
  const ColumnSizes sizes = column_sizes(context.input(0).shape);
  return kernel_of([=](const Binding& b) { forward(b, sizes, attrs); });
}

Prepared prepare_pn_v_backward(const NodeContext& context) {
  const auto attrs = context.attrs<PnVAttrs>();
  const ColumnSizes sizes = column_sizes(context.input(0).shape);
  return kernel_of([=](const Binding& b) { backward(b, sizes, attrs); });
}

}  // namespace keel::reference
