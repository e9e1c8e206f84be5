// Reference moving average batch norm: one channel after the other.
#include "src/ops/norm/mabn.h"

#include <algorithm>

#include "backends/reference/kernels/norm/channels.h"

namespace keel::reference {
namespace {

// Puts `value` into channel c of a ring buffer (m, channels), in its row of this step, and returns
// what stands for the buffer: its mean over the rows, or the value alone.
double push(const TensorRef& ring, Eigen::Index c, const MabnPhase& phase, double value) {
  auto column = matrix(ring, ring.type.shape[0], ring.type.shape[1]).col(c);
  column[phase.row] = value;
  return phase.averages ? column.mean() : value;
}

// One channel's V and r.
struct Statistics {
  double v, r;
};

// Of this step; x2' and v' are written.
Statistics train(const Binding& b, const RowMajor& x, const MabnAttrs& attrs, Eigen::Index c) {
  const MabnPhase phase = mabn_phase(attrs, *b.inputs[6].as<std::int32_t>());
  const double running = vector(b.inputs[5])[c];
  const double v = push(b.outputs[3], c, phase, x.squaredNorm() / double(x.size()));
  vector(b.outputs[4])[c] = attrs.keep * running + (1 - attrs.keep) * v;
  if (!phase.clips) return {v, 1};
  const double ratio = std::sqrt(v + attrs.eps) / std::sqrt(running + attrs.eps);
  return {v, std::clamp(ratio, 1 / attrs.clip, attrs.clip)};
}

// x2', v' and step' as they were, to be changed from there.
void keep_states(const Binding& b) {
  vector(b.outputs[3]) = vector(b.inputs[3]);
  vector(b.outputs[4]) = vector(b.inputs[5]);
  *b.outputs[5].as<std::int32_t>() = *b.inputs[6].as<std::int32_t>();
}

// y = x / sqrt(V + eps) * r * gain + bias
void forward(const Binding& b, const ColumnSizes& sizes, const MabnAttrs& attrs) {
  const KeptRows rows = kept_rows(b.inputs[7], sizes);
  if (attrs.training) keep_states(b);
  const bool trains = attrs.training && !rows.empty();
  for (Eigen::Index c = 0; c < sizes.channels; ++c) {
    const RowMajor x = read_channel(b.inputs[0], sizes, rows, c);
    const Statistics of = trains ? train(b, x, attrs, c) : Statistics{vector(b.inputs[5])[c], 1};
    const double rstd = 1 / std::sqrt(of.v + attrs.eps);
    const double factor = rstd * of.r * element_or(b.inputs[1], c, 1);
    const RowMajor y = x.array() * factor + element_or(b.inputs[2], c, 0);
    write_channel(b.outputs[0], sizes, rows, c, y);
    vector(b.outputs[1])[c] = rstd;
    vector(b.outputs[2])[c] = of.r;
  }
  if (trains) ++*b.outputs[5].as<std::int32_t>();
}

// g = dy * gain * r. Training: dx = rstd * (g - z * G); evaluation: dx = rstd * g.
void backward(const Binding& b, const ColumnSizes& sizes, const MabnAttrs& attrs) {
  const KeptRows rows = kept_rows(b.inputs[7], sizes);
  const MabnPhase phase = mabn_phase(attrs, *b.inputs[5].as<std::int32_t>());
  if (attrs.training) vector(b.outputs[3]) = vector(b.inputs[4]);
  for (Eigen::Index c = 0; c < sizes.channels; ++c) {
    const double rstd = vector(b.inputs[2])[c], r = vector(b.inputs[3])[c];
    const RowMajor z = read_channel(b.inputs[0], sizes, rows, c) * rstd;
    const RowMajor dy = read_channel(b.inputs[6], sizes, rows, c);
    const RowMajor g = dy * (element_or(b.inputs[1], c, 1) * r);
    const bool trains = attrs.training && g.size() > 0;
    const double mean = trains ? push(b.outputs[3], c, phase, g.cwiseProduct(z).mean()) : 0;
    write_channel(b.outputs[0], sizes, rows, c, rstd * (g - z * mean));
    if (b.outputs[1]) vector(b.outputs[1])[c] = dy.cwiseProduct(z).sum() * r;
    if (b.outputs[2]) vector(b.outputs[2])[c] = dy.sum();
  }
}

}  // namespace

Prepared prepare_mabn(const NodeContext& context) {
  const auto attrs = context.attrs<MabnAttrs>();
  const ColumnSizes sizes = column_sizes(context.input(0).shape);
  return kernel_of([=](const Binding& b) { forward(b, sizes, attrs); });
}

Prepared prepare_mabn_backward(const NodeContext& context) {
  const auto attrs = context.attrs<MabnAttrs>();
  const ColumnSizes sizes = column_sizes(context.input(0).shape);
  return kernel_of([=](const Binding& b) { backward(b, sizes, attrs); });
}

}  // namespace keel::reference
