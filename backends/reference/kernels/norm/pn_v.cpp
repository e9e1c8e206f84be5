// Reference PN-V, one channel after the other.
#include "src/ops/norm/pn_v.h"

#include "backends/reference/kernels/norm/channels.h"

namespace keel::reference {
namespace {

using In = PnVInput;
using Out = PnVOutput;
using BackIn = PnVBackwardInput;
using BackOut = PnVGradient;

// y = x * rpsi * gain + bias, rpsi of the batch's quadratic mean or of the running one.
void forward(const Binding& b, const ColumnSizes& sizes, const PnVAttrs& attrs) {
  const KeptRows rows = kept_rows(b.inputs[In::kMask], sizes);
  for (Eigen::Index c = 0; c < sizes.channels; ++c) {
    const RowMajor x = read_channel(b.inputs[In::kX], sizes, rows, c);
    double psi2 = vector(b.inputs[In::kPsi2])[c];
    if (attrs.training && x.size() > 0) {
      const double running = psi2;
      psi2 = x.squaredNorm() / double(x.size());
      vector(b.outputs[Out::kNextPsi2])[c] = attrs.keep * running + (1 - attrs.keep) * psi2;
    } else if (attrs.training) {
      vector(b.outputs[Out::kNextPsi2])[c] = psi2;
    }
    const double rpsi = 1 / std::sqrt(psi2 + attrs.eps);
    const RowMajor y = x.array() * rpsi * element_or(b.inputs[In::kGain], c, 1) +
                       element_or(b.inputs[In::kBias], c, 0);
    write_channel(b.outputs[Out::kY], sizes, rows, c, y);
    vector(b.outputs[Out::kRpsi])[c] = rpsi;
  }
}

// g = dy * gain. Training: dx = rpsi * (g - xhat * mean(g * xhat)); evaluation: dx = rpsi * g.
void backward(const Binding& b, const ColumnSizes& sizes, const PnVAttrs& attrs) {
  const KeptRows rows = kept_rows(b.inputs[BackIn::kMask], sizes);
  for (Eigen::Index c = 0; c < sizes.channels; ++c) {
    const double rpsi = vector(b.inputs[BackIn::kRpsi])[c];
    const RowMajor xhat = read_channel(b.inputs[BackIn::kX], sizes, rows, c) * rpsi;
    const RowMajor dy = read_channel(b.inputs[BackIn::kDy], sizes, rows, c);
    const RowMajor g = dy * element_or(b.inputs[BackIn::kGain], c, 1);
    const bool has_slope = attrs.training && xhat.size() > 0;
    const double slope = has_slope ? g.cwiseProduct(xhat).mean() : 0;
    write_channel(b.outputs[BackOut::kDx], sizes, rows, c, rpsi * (g - xhat * slope));
    if (b.outputs[BackOut::kDgain]) {
      vector(b.outputs[BackOut::kDgain])[c] = dy.cwiseProduct(xhat).sum();
    }
    if (b.outputs[BackOut::kDbias]) vector(b.outputs[BackOut::kDbias])[c] = dy.sum();
  }
}

}  // namespace

Prepared prepare_pn_v(const NodeContext& context) {
  const auto attrs = context.attrs<PnVAttrs>();
  const ColumnSizes sizes = column_sizes(context.input(In::kX).shape);
  return kernel_of([=](const Binding& b) { forward(b, sizes, attrs); });
}

Prepared prepare_pn_v_backward(const NodeContext& context) {
  const auto attrs = context.attrs<PnVBackwardAttrs>();
  const ColumnSizes sizes = column_sizes(context.input(BackIn::kX).shape);
  return kernel_of([=](const Binding& b) { backward(b, sizes, attrs); });
}

}  // namespace keel::reference
