// Unified normalization smooths quadratic means of the batch over a window of the last steps,
// forward and backward. One block asks all channels whether the batch is an outlier before any of
// them has its statistics.
#include "backends/cuda/kernels/kernels.h"
#include "backends/cuda/kernels/norm/uncentred_columns.cuh"
#include "src/ops/norm/unified_norm.h"

namespace keel::cuda {
namespace {

using In = UnifiedNormInput;
using Out = UnifiedNormOutput;
using BackIn = UnifiedNormBackwardInput;
using BackOut = UnifiedNormGradient;

// A ring buffer (m, channels) in which a value stands for the row of this step.
struct Window {
  Global<const float> ring;
  std::int64_t m, channels, row;

  __device__ double at(std::int64_t c, std::int64_t i, double value) const {
    return i == row ? value : ring[i * channels + c];
  }
  __device__ double mean(std::int64_t c, double value) const {
    double sum = 0;
    for (std::int64_t i = 0; i < m; ++i) sum += at(c, i, value);
    return sum / double(m);
  }
  // By square roots of neighbours: `waiting` has the means of 1, 2, 4, ... rows that have no
  // neighbour yet.
  __device__ double geometric_mean(std::int64_t c, double value) const {
    double waiting[64];
    int count = 0;
    for (std::int64_t i = 0; i < m; ++i) {
      double mean = at(c, i, value);
      for (std::int64_t joined = i; joined % 2 == 1; joined /= 2) {
        mean = sqrt(waiting[--count] * mean);
      }
      waiting[count++] = mean;
    }
    return waiting[0];
  }
};

// A ring buffer before and after this step; both may be the same memory.
struct Ring {
  Global<const float> before;
  Global<float> after;
  std::int64_t m, channels;

  __device__ void prefetch(std::int64_t c) const {
    for (std::int64_t row = 0; row < m; ++row) before.prefetch(row * channels + c);
  }
  __device__ Window window(const MabnPhase& phase) const {
    return {before, m, channels, phase.row};
  }
  // Puts `value` into the row of this step. Where the batch has no row (`is_empty`) the buffer
  // stays as it was.
  __device__ void push(std::int64_t c, const MabnPhase& phase, float value, bool is_empty) const {
    for (std::int64_t row = 0; row < m; ++row) {
      const bool is_new = row == phase.row && !is_empty;
      if (!is_new && before.data() == after.data()) continue;
      after[row * channels + c] = is_new ? value : before[row * channels + c];
    }
  }
};

// A batch without a row has this as its mean of squares.
constexpr double kNoRow = -1;

struct StoreMeans {
  Global<double> means;
  __device__ void operator()(std::int64_t c, SquareSums sums) const {
    means[c] = sums.count == 0 ? kNoRow : sums.squares / sums.count;
  }
};

// The question whether a batch skips the window.
struct Question {
  UnifiedNormAttrs attrs;
  Global<const double> means;  // of the squares of the batch
  Global<const float> x2;
  Global<const std::int32_t> step;
  Global<float> skips;
  Global<std::int32_t> next_step;
};

// The unbiased variance of the roots of all elements. All threads of the block take part.
__device__ double variance_of_roots(const Global<const float>& squares) {
  double sum = 0, deviations = 0;
  for (std::int64_t i = threadIdx.x; i < squares.size(); i += kColumnBlock) {
    sum += sqrt(double(squares[i]));
  }
  const double mean = over_block<kColumnBlock>(sum, Add()) / double(squares.size());
  for (std::int64_t i = threadIdx.x; i < squares.size(); i += kColumnBlock) {
    const double deviation = sqrt(double(squares[i])) - mean;
    deviations += deviation * deviation;
  }
  return over_block<kColumnBlock>(deviations, Add()) / double(squares.size() - 1);
}

// Writes skips and step'. A gap that is NaN is none.
__global__ void answer(Question a, std::int64_t channels) {
  const UnifiedNormAttrs& attrs = a.attrs;
  const MabnPhase phase = attrs.phase(a.step[0]);
  const bool trains = a.means[0] != kNoRow;
  bool skips = trains && attrs.m == 1;
  if (trains && attrs.filter && phase.averages && attrs.m > 1) {
    const double bound = double(attrs.m) * variance_of_roots(a.x2);
    const Window window{a.x2, attrs.m, channels, phase.row};
    float found = 0;
    for (std::int64_t c = threadIdx.x; c < channels; c += kColumnBlock) {
      const double batch = float(a.means[c]);
      if (window.mean(c, batch) - window.geometric_mean(c, batch) > bound) found = 1;
    }
    skips = over_block<kColumnBlock>(found, Largest()) > 0;
  }
  if (threadIdx.x > 0) return;
  a.skips[0] = skips ? 1 : 0;
  a.next_step[0] = a.step[0] + (trains ? 1 : 0);
}

// Writes rstd, ratio, x2' and v' of a channel.
struct Statistics {
  UnifiedNormAttrs attrs;
  Global<const double> means;
  Ring x2;
  Global<const float> v, skips;
  Global<const std::int32_t> step;
  Global<float> rstd, ratio, next_v;

  __device__ void operator()(std::int64_t c) const {
    const MabnPhase phase = attrs.phase(step[0]);
    const double running = v[c], batch = means[c];
    const bool is_empty = batch == kNoRow, skip = skips[0] != 0;
    double used = is_empty ? running : batch;
    if (phase.averages && !skip && !is_empty) {
      used = x2.window(phase).geometric_mean(c, float(batch));
    }
    x2.push(c, phase, skip && attrs.m > 1 ? v[c] : float(batch), is_empty);
    next_v[c] = float(is_empty ? running : attrs.keep * running + (1 - attrs.keep) * used);
    const double quotient = sqrt(used + attrs.eps) / sqrt(running + attrs.eps);
    const double least = 1 / attrs.clip, most = attrs.clip;
    const double clipped = quotient < least ? least : quotient > most ? most : quotient;
    rstd[c] = float(1 / sqrt(used + attrs.eps));
    ratio[c] = float(phase.clips && !skip && !is_empty ? clipped : 1);
  }
};

// The statistics of evaluation are the running ones.
struct RunningStatistics {
  double eps;
  Global<const float> v;
  Global<float> rstd, ratio, skips;

  __device__ void operator()(std::int64_t c) const {
    rstd[c] = float(1 / sqrt(v[c] + eps));
    ratio[c] = 1;
    if (c == 0) skips[0] = 0;
  }
};

void run_statistics(const Binding& b, const ColumnSizes& sizes, const UnifiedNormAttrs& attrs) {
  const auto v = input(b.inputs[In::kV]);
  const auto rstd = output(b.outputs[Out::kRstd]), ratio = output(b.outputs[Out::kRatio]),
             skips = output(b.outputs[Out::kSkips]);
  if (!attrs.training) {
    return each_channel(sizes, RunningStatistics{attrs.eps, v, rstd, ratio, skips});
  }
  const auto x2 = input(b.inputs[In::kX2]);
  const auto step = global<const std::int32_t>(b.inputs[In::kStep]);
  const Global<double> means = uncentred_scratch(b, sizes, false).vector(0);
  sum_squares(b, sizes, square_source<In>(b), StoreMeans{means});
  launch(answer, {1, kColumnBlock},
         Question{attrs, means, x2, step, skips, global<std::int32_t>(b.outputs[Out::kNextStep])},
         sizes.channels);
  each_channel(sizes, Statistics{attrs,
                                 means,
                                 {x2, output(b.outputs[Out::kNextX2]), attrs.m, sizes.channels},
                                 v,
                                 skips,
                                 step,
                                 rstd,
                                 ratio,
                                 output(b.outputs[Out::kNextV])});
}

void run_forward(const Binding& b, const ColumnSizes& sizes, const UnifiedNormAttrs& attrs) {
  run_statistics(b, sizes, attrs);
  write_uncentred<In, Out>(b, sizes);
}

// Writes dgain, dbias, gz', nu' and the slope of dx, all with z = x * rstd.
struct Gradients {
  UnifiedNormAttrs attrs;
  Ring gz;
  Global<const std::int32_t> step;
  Global<const float> nu, ratio, skips, gain;
  Global<float> dgain, dbias, next_nu;
  Global<double> slope;

  __device__ void prefetch(std::int64_t c) const {
    nu.prefetch(c);
    ratio.prefetch(c);
    gain.prefetch(c);
    gz.prefetch(c);
  }
  __device__ void operator()(std::int64_t c, UncentredGradientSums sums) const {
    if (dgain) dgain[c] = float(sums.dy_xhat * ratio[c]);
    if (dbias) dbias[c] = float(sums.dy);
    if (!attrs.training) return;
    const MabnPhase phase = attrs.phase(step[0]);
    const bool is_empty = sums.count == 0, skip = skips[0] != 0;
    const float running = nu[c];
    const double batch = is_empty ? 0 : sums.dy_xhat * ratio[c] * gain.get(c, 1) / sums.count;
    const double mean = phase.averages && !skip ? gz.window(phase).mean(c, batch) : batch;
    const double next = attrs.keep * running + (1 - attrs.keep) * mean;
    gz.push(c, phase, skip ? running : float(batch), is_empty);
    next_nu[c] = is_empty ? running : float(next);
    slope[c] = is_empty ? 0 : skip ? mean : next;
  }
};

void run_backward(const Binding& b, const ColumnSizes& sizes,
                  const UnifiedNormBackwardAttrs& attrs) {
  UncentredBackward tensors = uncentred_tensors<BackIn, BackOut>(b, attrs.training);
  tensors.factor = input(b.inputs[BackIn::kRatio]);
  const Gradients gradients{
      attrs,
      {input(b.inputs[BackIn::kGz]), output(b.outputs[BackOut::kNextGz]), attrs.m, sizes.channels},
      global<const std::int32_t>(b.inputs[BackIn::kStep]),
      input(b.inputs[BackIn::kNu]),
      tensors.factor,
      input(b.inputs[BackIn::kSkips]),
      tensors.gain,
      output(b.outputs[BackOut::kDgain]),
      output(b.outputs[BackOut::kDbias]),
      output(b.outputs[BackOut::kNextNu]),
      uncentred_scratch(b, sizes, true).vector(0)};
  run_uncentred_backward(b, sizes, tensors, gradients);
}

}  // namespace

Prepared prepare_unified_norm(const NodeContext& context) {
  return prepare_columns<UnifiedNormAttrs>(context, kUncentredSums, 1, run_forward);
}
Prepared prepare_unified_norm_backward(const NodeContext& context) {
  return prepare_columns<UnifiedNormBackwardAttrs>(context, kUncentredGradientSums, 1,
                                                   run_backward);
}

}  // namespace keel::cuda
