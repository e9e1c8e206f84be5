// Reference moving average batch norm: one channel after the other.
#include "src/ops/norm/mabn.h"

#include <algorithm>

#include "backends/reference/kernels/norm/column_sums.h"

namespace keel::reference {
namespace {

using In = MabnInput;
using Out = MabnOutput;
using BackIn = MabnBackwardInput;
using BackOut = MabnGradient;

// Puts `value` into channel c of a ring buffer (m, channels), in its row of this step, and returns
// what stands for the buffer: its mean over the rows, or just the value.
double push(const TensorRef& ring, Eigen::Index c, const MabnPhase& phase, double value) {
  auto column = matrix(ring, ring.type.shape[0], ring.type.shape[1]).col(c);
  column[phase.row] = value;
  return phase.averages ? column.mean() : value;
}

// One channel's V and r.
struct Statistics {
  double v, r;
};

// Returns those of this step and writes x2' and v'.
Statistics train(const Binding& b, const Squares& of, const MabnAttrs& attrs, Eigen::Index c) {
  const MabnPhase phase = mabn_phase(attrs, *b.inputs[In::kStep].as<std::int32_t>());
  const double running = vector(b.inputs[In::kV])[c];
  const double v = push(b.outputs[Out::kNextX2], c, phase, of.kept / of.count);
  vector(b.outputs[Out::kNextV])[c] = attrs.keep * running + (1 - attrs.keep) * v;
  if (!phase.clips) return {v, 1};
  const double ratio = std::sqrt(v + attrs.eps) / std::sqrt(running + attrs.eps);
  return {v, std::clamp(ratio, 1 / attrs.clip, attrs.clip)};
}

// Copies the states to x2', v' and step', which are changed from there.
void keep_states(const Binding& b) {
  vector(b.outputs[Out::kNextX2]) = vector(b.inputs[In::kX2]);
  vector(b.outputs[Out::kNextV]) = vector(b.inputs[In::kV]);
  *b.outputs[Out::kNextStep].as<std::int32_t>() = *b.inputs[In::kStep].as<std::int32_t>();
}

// y = x / sqrt(V + eps) * r * gain + bias
void forward(const Binding& b, const ColumnSizes& sizes, const MabnAttrs& attrs) {
  const KeptRows rows = kept_rows(b.inputs[In::kMask], sizes);
  if (attrs.training) keep_states(b);
  const TensorRef& given = b.inputs[In::kSquares];
  const Kept kept{sizes, rows};
  const bool trains = attrs.training && kept_count(given, kept) > 0;
  const auto squares = [&](Eigen::Index c) {
    return given ? given_squares(given, c, false) : form_squares(b.inputs[In::kX], kept, c, false);
  };
  for (Eigen::Index c = 0; c < sizes.channels; ++c) {
    const RowMajor x = read_channel(b.inputs[In::kX], sizes, rows, c);
    const Statistics of =
        trains ? train(b, squares(c), attrs, c) : Statistics{vector(b.inputs[In::kV])[c], 1};
    const double rstd = 1 / std::sqrt(of.v + attrs.eps);
    const double factor = rstd * of.r * element_or(b.inputs[In::kGain], c, 1);
    const RowMajor y = x.array() * factor + element_or(b.inputs[In::kBias], c, 0);
    write_channel(b.outputs[Out::kY], sizes, rows, c, y);
    vector(b.outputs[Out::kRstd])[c] = rstd;
    vector(b.outputs[Out::kR])[c] = of.r;
  }
  if (trains) ++*b.outputs[Out::kNextStep].as<std::int32_t>();
}

// g = dy * gain * r. Training: dx = rstd * (g - z * G); evaluation: dx = rstd * g.
void backward(const Binding& b, const ColumnSizes& sizes, const MabnAttrs& attrs) {
  const KeptRows rows = kept_rows(b.inputs[BackIn::kMask], sizes);
  const MabnPhase phase = mabn_phase(attrs, *b.inputs[BackIn::kStep].as<std::int32_t>());
  if (attrs.training) vector(b.outputs[BackOut::kNextGz]) = vector(b.inputs[BackIn::kGz]);
  for (Eigen::Index c = 0; c < sizes.channels; ++c) {
    const double rstd = vector(b.inputs[BackIn::kRstd])[c], r = vector(b.inputs[BackIn::kR])[c];
    const RowMajor z = read_channel(b.inputs[BackIn::kX], sizes, rows, c) * rstd;
    const RowMajor dy = read_channel(b.inputs[BackIn::kDy], sizes, rows, c);
    const double factor = element_or(b.inputs[BackIn::kGain], c, 1) * r;
    const RowMajor g = dy * factor;
    const TensorRef& given = b.inputs[BackIn::kSums];
    const UncentredSums of = given ? given_uncentred(given, c, false)
                                   : form_sums({b.inputs[BackIn::kX], b.inputs[BackIn::kDy], rstd},
                                               {sizes, rows}, c, false);
    const bool trains = attrs.training && of.count > 0;
    const double batch = trains ? factor * of.dy_xhat / of.count : 0;
    const double mean = trains ? push(b.outputs[BackOut::kNextGz], c, phase, batch) : 0;
    write_channel(b.outputs[BackOut::kDx], sizes, rows, c, rstd * (g - z * mean));
    if (b.outputs[BackOut::kDgain]) {
      vector(b.outputs[BackOut::kDgain])[c] = of.dy_xhat * r;
    }
    if (b.outputs[BackOut::kDbias]) vector(b.outputs[BackOut::kDbias])[c] = of.dy;
  }
}

}  // namespace

Prepared prepare_mabn(const NodeContext& context) {
  const auto attrs = context.attrs<MabnAttrs>();
  const ColumnSizes sizes = column_sizes(context.input(In::kX).shape);
  return kernel_of([=](const Binding& b) { forward(b, sizes, attrs); });
}

Prepared prepare_mabn_backward(const NodeContext& context) {
  const auto attrs = context.attrs<MabnBackwardAttrs>();
  const ColumnSizes sizes = column_sizes(context.input(BackIn::kX).shape);
  return kernel_of([=](const Binding& b) { backward(b, sizes, attrs); });
}

}  // namespace keel::reference
