// Reference PN-V, one channel after the other.
#include "src/ops/norm/pn_v.h"

#include "backends/reference/kernels/norm/column_sums.h"

namespace keel::reference {
namespace {

using In = PnVInput;
using Out = PnVOutput;
using BackIn = PnVBackwardInput;
using BackOut = PnVGradient;

// y = x * rstd * gain + bias, rstd of the batch's quadratic mean or of the running one.
void forward(const Binding& b, const ColumnSizes& sizes, const PnVAttrs& attrs) {
  const KeptRows rows = kept_rows(b.inputs[In::kMask], sizes);
  for (Eigen::Index c = 0; c < sizes.channels; ++c) {
    const RowMajor x = read_channel(b.inputs[In::kX], sizes, rows, c);
    const TensorRef& given = b.inputs[In::kSquares];
    const Squares of = given ? given_squares(given, c, false)
                             : form_squares(b.inputs[In::kX], {sizes, rows}, c, false);
    double psi2 = vector(b.inputs[In::kPsi2])[c];
    if (attrs.training && of.count > 0) {
      const double running = psi2;
      psi2 = of.kept / of.count;
      vector(b.outputs[Out::kNextPsi2])[c] = attrs.keep * running + (1 - attrs.keep) * psi2;
    } else if (attrs.training) {
      vector(b.outputs[Out::kNextPsi2])[c] = psi2;
    }
    const double rstd = 1 / std::sqrt(psi2 + attrs.eps);
    const RowMajor y = x.array() * rstd * element_or(b.inputs[In::kGain], c, 1) +
                       element_or(b.inputs[In::kBias], c, 0);
    write_channel(b.outputs[Out::kY], sizes, rows, c, y);
    vector(b.outputs[Out::kRstd])[c] = rstd;
  }
}

// g = dy * gain. Training: dx = rstd * (g - xhat * mean(g * xhat)); evaluation: dx = rstd * g.
void backward(const Binding& b, const ColumnSizes& sizes, const PnVAttrs& attrs) {
  const KeptRows rows = kept_rows(b.inputs[BackIn::kMask], sizes);
  for (Eigen::Index c = 0; c < sizes.channels; ++c) {
    const double rstd = vector(b.inputs[BackIn::kRstd])[c];
    const RowMajor xhat = read_channel(b.inputs[BackIn::kX], sizes, rows, c) * rstd;
    const RowMajor dy = read_channel(b.inputs[BackIn::kDy], sizes, rows, c);
    const double gain = element_or(b.inputs[BackIn::kGain], c, 1);
    const RowMajor g = dy * gain;
    const TensorRef& given = b.inputs[BackIn::kSums];
    const UncentredSums of = given ? given_uncentred(given, c, false)
                                   : form_sums({b.inputs[BackIn::kX], b.inputs[BackIn::kDy], rstd},
                                               {sizes, rows}, c, false);
    const bool has_slope = attrs.training && of.count > 0;
    const double slope = has_slope ? gain * of.dy_xhat / of.count : 0;
    write_channel(b.outputs[BackOut::kDx], sizes, rows, c, rstd * (g - xhat * slope));
    if (b.outputs[BackOut::kDgain]) {
      vector(b.outputs[BackOut::kDgain])[c] = of.dy_xhat;
    }
    if (b.outputs[BackOut::kDbias]) vector(b.outputs[BackOut::kDbias])[c] = of.dy;
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
