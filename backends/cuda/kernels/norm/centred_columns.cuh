// Column norms that subtract the batch's mean: moments, y, dx, and the sums of the backward.
#pragma once

#include "backends/cuda/kernels/norm/columns.cuh"
#include "backends/cuda/kernels/norm/mean.cuh"
#include "src/ops/column_gradient_sums.h"
#include "src/ops/column_moments.h"

namespace keel::cuda {

// The moments of a channel: the numbers of kept and of all elements, and the mean and sum of
// squares about it of the kept ones.
struct Moments {
  double count, all, mean, squares;
};

// The terms of the moments, in one pass over x. A chunk has the sums of the differences from one of
// its kept elements, the anchor, and of their squares. Less n times the square of the mean
// difference, the latter are the squares about the mean. No element is further than sqrt(n)
// deviations from the mean of n of them, so what is left is off by at most n times the rounding of
// the sum: by 2^-53 n k for k additions in a row, 1e-9 for 8000 rows of which a thread adds 1000.
// The chunks' means and squares are joined in the same way, about the mean of one chunk.
struct MomentTerms {
  static constexpr bool kAnchored = true;
  static constexpr int kTensors = 1, kSums = 3;
  Data tensors[kTensors];
  KeptRows kept;

  struct Channel {
    float at;
    double anchor;
  };
  __device__ static Channel channel(float anchor) { return {anchor, anchor}; }
  __device__ void operator()(const float (&of)[kTensors], const TileStep& step, const Channel& c,
                             double (&sums)[kSums]) const {
    const double residual = double(step.is_kept ? of[0] : c.at) - c.anchor;
    sums[1] += residual;
    sums[2] = fma(residual, residual, sums[2]);
  }
  __device__ static void count(double kept, double, double (&sums)[kSums]) { sums[0] += kept; }

  // From the count and the sums about an anchor to the count, the mean and the squares about it.
  __device__ static void close(double (&sums)[kSums], double anchor) {
    const double gap = sums[1] / (sums[0] > 0 ? sums[0] : 1);
    const double squares = sums[2] - sums[1] * gap;
    sums[1] = sums[0] > 0 ? anchor + gap : 0;
    sums[2] = squares < 0 ? 0 : squares;
  }
  __device__ static void open(double (&sums)[kSums], double anchor) {
    const double gap = sums[1] - anchor;
    sums[1] = sums[0] * gap;
    sums[2] = fma(sums[1], gap, sums[2]);
  }
};

template <class Finish>
struct FinishMoments {
  double all;
  Finish finish;
  __device__ void prefetch(std::int64_t c) const {
    if constexpr (requires { finish.prefetch(c); }) finish.prefetch(c);
  }
  __device__ void operator()(std::int64_t c, const double (&sums)[3]) const {
    finish(c, Moments{sums[0], all, sums[1], sums[2]});
  }
};

template <class Finish>
struct GivenMoments {
  GivenSums given;
  Finish finish;
  __device__ void operator()(std::int64_t c) const {
    using Row = MomentRow;
    finish(c, Moments{given.at(Row::kCount, c), given.at(Row::kAll, c), given.at(Row::kMean, c),
                      given.at(Row::kSquares, c)});
  }
};

// The source of the moments: the kept rows of x, or a node's input if it is present.
struct MomentSource {
  Data x;
  KeptRows kept;
  Global<const double> given;
};

// Calls finish(channel, Moments) on the device.
template <class Finish>
void column_moments(const ColumnSizes& sizes, const ColumnScratch& scratch,
                    const MomentSource& from, const Finish& finish) {
  if (from.given) {
    return each_channel(sizes, GivenMoments<Finish>{{from.given, sizes.channels}, finish});
  }
  column_sums(sizes, MomentTerms{{from.x}, from.kept}, scratch.partial(),
              FinishMoments<Finish>{double(sizes.count()), finish});
}

// y = ((x - mean) * rstd * r + d) * gain + bias, but the bias or 0 in the rows left out. r, d,
// gain and bias may be absent.
struct CentreColumns {
  static constexpr int kTensors = 1;
  Data tensors[kTensors];  // x
  Global<const float> rstd, r, d, gain, bias;
  Global<const double> mean;
  KeptRows kept;
  Result out;
  bool pads_with_bias;

  struct Channel {
    float part, coarse, fine, scale, d, gain, bias;
  };
  __device__ Channel channel(std::int64_t c) const {
    const float coarse = float(mean[c]), part = part_of(coarse);
    return {part,
            coarse * part,
            float(mean[c] - coarse) * part,
            rstd[c] * r.get(c, 1) / part,
            d.get(c, 0),
            gain.get(c, 1),
            bias.get(c, 0)};
  }
  __device__ float operator()(const float (&of)[kTensors], const TileStep& step,
                              const Channel& c) const {
    if (!step.is_kept) return pads_with_bias ? c.bias : 0;
    return ((of[0] * c.part - c.coarse - c.fine) * c.scale + c.d) * c.gain + c.bias;
  }
};

// The parts of y that not every norm has.
struct CentredExtras {
  Global<const float> r, d;
  bool pads_with_bias = false;
};

// A forward by the places of a norm: in training statistics(channel, Moments), else
// statistics(channel), which leaves the exact mean in vector 0 of the scratch; then y.
template <class In, class Out, class Statistics>
void run_centred(const Binding& b, const ColumnSizes& sizes, bool training,
                 const Statistics& statistics, const CentredExtras& extras) {
  const ColumnScratch scratch(b, sizes, MomentTerms::kSums);
  const MomentSource from{Data(b.inputs[In::kX]), kept_rows(b.inputs[In::kMask]),
                          global<const double>(b.inputs[In::kMoments])};
  training ? column_moments(sizes, scratch, from, statistics) : each_channel(sizes, statistics);
  map_columns(sizes, CentreColumns{{from.x},
                                   output(b.outputs[Out::kRstd]),
                                   extras.r,
                                   extras.d,
                                   input(b.inputs[In::kGain]),
                                   input(b.inputs[In::kBias]),
                                   scratch.vector(0),
                                   from.kept,
                                   Result(b.outputs[Out::kY]),
                                   extras.pads_with_bias});
}

// The sums that the backward of a channel needs: the numbers of kept and of all elements; the sums
// over kept elements of xhat (not 0, because the saved mean is a float), of dy and of dy * xhat;
// and the sum of dy over the rows left out.
struct GradientSums {
  double count, all, xhat, dy, dy_xhat, padding_dy;

  // The mean of xhat, if the saved mean is the mean of these same elements.
  __device__ double low(bool is_own_mean) const {
    return is_own_mean && count > 0 ? xhat / count : 0;
  }
};

struct GradientTerms : PlainSums {
  static constexpr int kTensors = 2, kSums = 5;
  Data tensors[kTensors];  // x, dy
  Global<const float> mean;
  KeptRows kept;

  GradientTerms(Data x, Data dy, Global<const float> mean, KeptRows kept)
      : tensors{x, dy}, mean(mean), kept(kept) {}

  struct Channel {
    float at;
    double mean;
  };
  __device__ Channel channel(std::int64_t c) const { return {mean[c], mean[c]}; }
  __device__ void operator()(const float (&of)[kTensors], const TileStep& step, const Channel& c,
                             double (&sums)[kSums]) const {
    const double residual = double(step.is_kept ? of[0] : c.at) - c.mean;
    const double dy = step.is_kept ? of[1] : 0;
    sums[0] += dy;
    sums[1] = fma(dy, residual, sums[1]);
    sums[2] += residual;
    if (step.is_left_out) sums[4] += of[1];
  }
  __device__ static void count(double kept, double, double (&sums)[kSums]) { sums[3] += kept; }
};

// Calls finish(channel, GradientSums).
template <class Finish>
struct FinishGradient {
  double all;
  Global<const float> rstd;
  Finish finish;
  __device__ void prefetch(std::int64_t c) const {
    rstd.prefetch(c);
    if constexpr (requires { finish.prefetch(c); }) finish.prefetch(c);
  }
  __device__ void operator()(std::int64_t c, const double (&sums)[5]) const {
    const double scale = rstd[c];
    finish(c, GradientSums{sums[3], all, sums[2] * scale, sums[0], sums[1] * scale, sums[4]});
  }
};
template <class Finish>
struct GivenGradient {
  GivenSums given;
  bool has_padding;
  Finish finish;
  __device__ void operator()(std::int64_t c) const {
    using Row = CentredSumRow;
    finish(c,
           GradientSums{given.at(Row::kCount, c), given.at(Row::kAll, c), given.at(Row::kXhat, c),
                        given.at(Row::kDy, c), given.at(Row::kDyXhat, c),
                        has_padding ? given.at(Row::kPaddingDy, c) : 0});
  }
};

// dx = r * rstd * (g - mean(g) - xhat * slope) with g = dy * gain; in evaluation, where the
// statistics do not depend on x, dx = rstd * g. In the rows left out dx is 0.
struct CentreColumnsGradient {
  static constexpr int kTensors = 2;
  Data tensors[kTensors];  // x, dy
  Global<const float> mean, rstd, r, gain;
  Global<const double> low, mean_g, slope;
  KeptRows kept;
  Result out;
  bool training;

  struct Channel {
    float part, mean, low, rstd, factor, gain, mean_g, slope;
  };
  __device__ Channel channel(std::int64_t c) const {
    const float part = part_of(mean[c]);
    return {part,
            mean[c] * part,
            float(low[c]),
            rstd[c] / part,
            (training ? r.get(c, 1) : 1) * rstd[c],
            gain.get(c, 1),
            float(mean_g[c]),
            float(slope[c])};
  }
  __device__ float operator()(const float (&of)[kTensors], const TileStep& step,
                              const Channel& c) const {
    if (!step.is_kept) return 0;
    const float g = of[1] * c.gain;
    if (!training) return c.factor * g;
    const float xhat = (of[0] * c.part - c.mean) * c.rstd - c.low;
    return c.factor * (g - c.mean_g - xhat * c.slope);
  }
};

// The tensors of a backward of centred columns. r may be absent. The sums may be absent
// too; they are then computed.
struct CentredColumns {
  Data x, dy;
  Global<const float> gain, mean, rstd, r;
  KeptRows kept;
  Result dx;
  bool training;
  Global<const double> given;
};

// The tensors of a norm's backward, by its places.
template <class BackIn, class BackOut>
CentredColumns centred_tensors(const Binding& b, bool training) {
  return {Data(b.inputs[BackIn::kX]),
          Data(b.inputs[BackIn::kDy]),
          input(b.inputs[BackIn::kGain]),
          input(b.inputs[BackIn::kMean]),
          input(b.inputs[BackIn::kRstd]),
          {},
          kept_rows(b.inputs[BackIn::kMask]),
          Result(b.outputs[BackOut::kDx]),
          training,
          global<const double>(b.inputs[BackIn::kSums])};
}

// The values that dx needs for every channel besides these tensors.
struct ChannelSlopes {
  Global<double> low, mean_g, slope;
  explicit ChannelSlopes(const ColumnScratch& scratch)
      : low(scratch.vector(0)), mean_g(scratch.vector(1)), slope(scratch.vector(2)) {}
};

// Calls finish(channel, GradientSums) on the device.
template <class Finish>
void centred_sums(const ColumnSizes& sizes, const ColumnScratch& scratch, const CentredColumns& t,
                  const Finish& finish) {
  if (t.given) {
    const bool has_padding = t.given.size() == CentredSumRow::kRows * sizes.channels;
    return each_channel(sizes,
                        GivenGradient<Finish>{{t.given, sizes.channels}, has_padding, finish});
  }
  column_sums(sizes, GradientTerms(t.x, t.dy, t.mean, t.kept), scratch.partial(),
              FinishGradient<Finish>{double(sizes.count()), t.rstd, finish});
}

// Calls gradients(channel, GradientSums) on the device, which fills `slopes`, then writes dx.
template <class Gradients>
void run_centred_columns_backward(const ColumnSizes& sizes, const ColumnScratch& scratch,
                                  const CentredColumns& t, const Gradients& gradients) {
  centred_sums(sizes, scratch, t, gradients);
  const ChannelSlopes slopes(scratch);
  const Data x = t.training ? t.x : t.dy;  // which is not looked at
  map_columns(sizes, CentreColumnsGradient{{x, t.dy},
                                           t.mean,
                                           t.rstd,
                                           t.r,
                                           t.gain,
                                           slopes.low,
                                           slopes.mean_g,
                                           slopes.slope,
                                           t.kept,
                                           t.dx,
                                           t.training});
}

}  // namespace keel::cuda
