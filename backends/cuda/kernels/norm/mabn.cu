// Moving average batch norm replaces quadratic means of the batch by their averages over the last
// steps, forward and backward.
#include "backends/cuda/kernels/kernels.h"
#include "backends/cuda/kernels/norm/uncentred_columns.cuh"
#include "src/ops/norm/mabn.h"

namespace keel::cuda {
namespace {

using In = MabnInput;
using Out = MabnOutput;
using BackIn = MabnBackwardInput;
using BackOut = MabnGradient;

// A ring buffer (m, channels), before and after this step; both may be the same memory.
struct Ring {
  Global<const float> before;
  Global<float> after;
  std::int64_t m, channels;

  __device__ void prefetch(std::int64_t c) const {
    for (std::int64_t row = 0; row < m; ++row) before.prefetch(row * channels + c);
  }
  // Puts `value` into the row of this step and returns what stands for the buffer: its mean over
  // the rows, or just the value. Where the batch has no row (`is_empty`) the buffer stays as it
  // was.
  __device__ double push(std::int64_t c, const MabnPhase& phase, double value,
                         bool is_empty) const {
    double sum = 0;
    for (std::int64_t row = 0; row < m; ++row) {
      const bool is_new = row == phase.row && !is_empty;
      const float kept = is_new ? float(value) : before[row * channels + c];
      if (is_new || before.data() != after.data()) after[row * channels + c] = kept;
      sum += is_new ? value : kept;
    }
    return phase.averages ? sum / double(m) : value;
  }
};

struct Statistics {
  MabnAttrs attrs;
  Ring x2;
  Global<const float> v;
  Global<const std::int32_t> step;
  Global<float> rstd, r, next_v;
  Global<std::int32_t> next_step;

  __device__ void prefetch(std::int64_t c) const {
    v.prefetch(c);
    x2.prefetch(c);
  }
  __device__ void operator()(std::int64_t c, SquareSums sums) const {
    const MabnPhase phase = mabn_phase(attrs, step[0]);
    const bool is_empty = sums.count == 0;
    const double running = v[c];
    const double pushed = x2.push(c, phase, is_empty ? 0 : sums.squares / sums.count, is_empty);
    const double used = is_empty ? running : pushed;
    next_v[c] = float(is_empty ? running : attrs.keep * running + (1 - attrs.keep) * used);
    const double ratio = sqrt(used + attrs.eps) / sqrt(running + attrs.eps);
    const double least = 1 / attrs.clip, most = attrs.clip;
    const double clipped = ratio < least ? least : ratio > most ? most : ratio;
    write(c, used, phase.clips && !is_empty ? clipped : 1);
    if (c == 0) next_step[0] = step[0] + (is_empty ? 0 : 1);
  }
  __device__ void operator()(std::int64_t c) const { write(c, v[c], 1); }

 private:
  __device__ void write(std::int64_t c, double used, double factor) const {
    rstd[c] = float(1 / sqrt(used + attrs.eps));
    r[c] = float(factor);
  }
};

void run_forward(const Binding& b, const ColumnSizes& sizes, const MabnAttrs& attrs) {
  const Statistics statistics{
      attrs,
      {input(b.inputs[In::kX2]), output(b.outputs[Out::kNextX2]), attrs.m, sizes.channels},
      input(b.inputs[In::kV]),
      global<const std::int32_t>(b.inputs[In::kStep]),
      output(b.outputs[Out::kRstd]),
      output(b.outputs[Out::kR]),
      output(b.outputs[Out::kNextV]),
      global<std::int32_t>(b.outputs[Out::kNextStep])};
  run_uncentred_statistics<In>(b, sizes, attrs.training, statistics);
  write_uncentred<In, Out>(b, sizes, statistics.r);
}

// Writes dgain, dbias, gz' and the slope of dx, all with z = x * rstd.
struct Gradients {
  MabnAttrs attrs;
  Ring gz;
  Global<const std::int32_t> step;
  Global<const float> r, gain;
  Global<float> dgain, dbias;
  Global<double> slope;

  __device__ void prefetch(std::int64_t c) const {
    r.prefetch(c);
    gain.prefetch(c);
    gz.prefetch(c);
  }
  __device__ void operator()(std::int64_t c, UncentredGradientSums sums) const {
    if (dgain) dgain[c] = float(sums.dy_xhat * r[c]);
    if (dbias) dbias[c] = float(sums.dy);
    if (!attrs.training) return;
    const bool is_empty = sums.count == 0;
    const double mean = is_empty ? 0 : sums.dy_xhat * r[c] * gain.get(c, 1) / sums.count;
    slope[c] = gz.push(c, mabn_phase(attrs, step[0]), mean, is_empty);
  }
};

void run_backward(const Binding& b, const ColumnSizes& sizes, const MabnBackwardAttrs& attrs) {
  UncentredBackward tensors = uncentred_tensors<BackIn, BackOut>(b, attrs.training);
  tensors.factor = input(b.inputs[BackIn::kR]);
  const Gradients gradients{
      attrs,
      {input(b.inputs[BackIn::kGz]), output(b.outputs[BackOut::kNextGz]), attrs.m, sizes.channels},
      global<const std::int32_t>(b.inputs[BackIn::kStep]),
      tensors.factor,
      tensors.gain,
      output(b.outputs[BackOut::kDgain]),
      output(b.outputs[BackOut::kDbias]),
      uncentred_scratch(b, sizes, true).vector(0)};
  run_uncentred_backward(b, sizes, tensors, gradients);
}

}  // namespace

Prepared prepare_mabn(const NodeContext& context) {
  return prepare_columns<MabnAttrs>(context, kUncentredSums, 0, run_forward);
}
Prepared prepare_mabn_backward(const NodeContext& context) {
  return prepare_columns<MabnBackwardAttrs>(context, kUncentredGradientSums, 1, run_backward);
}

}  // namespace keel::cuda
