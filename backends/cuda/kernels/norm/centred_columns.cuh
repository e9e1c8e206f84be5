// Column norms that subtract the batch's mean: moments, y, dx, and the sums of the backward.
#pragma once

#include "backends/cuda/kernels/norm/columns.cuh"
#include "src/ops/column_gradient_sums.h"
#include "src/ops/column_moments.h"

namespace keel::cuda {

// The moments of a channel: the numbers of kept and of all elements, and the mean and sum of
// squares about it of the kept ones.
struct Moments {
  double count, all, mean, squares;
};

// The terms of the moments, in one pass over x. A thread computes the moments of the few
// elements in its registers about their own mean; two parts are then joined exactly
// (Chan, Golub, LeVeque 1983).
struct MomentTerms {
  static constexpr int kTensors = 1, kSums = 3;
  Data tensors[kTensors];
  KeptRows kept;

  __device__ static void join(double (&a)[kSums], const double (&b)[kSums]) {
    const double count = a[0] + b[0];
    if (count == 0) return;
    const double share = b[0] / count, gap = b[1] - a[1];
    a[1] += gap * share;
    a[2] += b[2] + gap * gap * (a[0] * share);
    a[0] = count;
  }
};

template <int kCount>
__device__ void add_batch(const MomentTerms& terms, const float (&values)[1][kCount],
                          const Batch& batch, std::int64_t, double (&sums)[3]) {
  double count = 0, sum = 0, squares = 0;
  unsigned kept = 0;
  for (int i = 0; i < kCount; ++i) {
    if (i >= batch.count || !terms.kept(batch.row_of(i))) continue;
    kept |= 1u << i;
    count += 1;
    sum += double(values[0][i]);
  }
  if (kept == 0) return;
  const double mean = sum / count;
  for (int i = 0; i < kCount; ++i) {
    if (!(kept >> i & 1)) continue;
    const double residual = values[0][i] - mean;
    squares += residual * residual;
  }
  MomentTerms::join(sums, {count, mean, squares});
}

template <class Finish>
struct FinishMoments {
  double all;
  Finish finish;
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
    float coarse, fine, scale, d, gain, bias;
  };
  __device__ Channel channel(std::int64_t c) const {
    const float coarse = float(mean[c]);
    return {coarse,      float(mean[c] - coarse), rstd[c] * r.get(c, 1),
            d.get(c, 0), gain.get(c, 1),          bias.get(c, 0)};
  }
  __device__ float operator()(const float (&of)[kTensors], std::int64_t row,
                              const Channel& c) const {
    if (!kept(row)) return pads_with_bias ? c.bias : 0;
    return ((of[0] - c.coarse - c.fine) * c.scale + c.d) * c.gain + c.bias;
  }
};

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
  __device__ void operator()(const float (&of)[kTensors], std::int64_t row, std::int64_t c,
                             double (&sums)[kSums]) const {
    const double dy = of[1];
    if (!kept(row)) {
      sums[4] += dy;
      return;
    }
    const double residual = double(of[0]) - mean[c];
    sums[0] += dy;
    sums[1] += dy * residual;
    sums[2] += residual;
    sums[3] += 1;
  }
};

// Calls finish(channel, GradientSums).
template <class Finish>
struct FinishGradient {
  double all;
  Global<const float> rstd;
  Finish finish;
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
    float mean, low, rstd, factor, gain, mean_g, slope;
  };
  __device__ Channel channel(std::int64_t c) const {
    return {
        mean[c],        float(low[c]),    rstd[c],        (training ? r.get(c, 1) : 1) * rstd[c],
        gain.get(c, 1), float(mean_g[c]), float(slope[c])};
  }
  __device__ float operator()(const float (&of)[kTensors], std::int64_t row,
                              const Channel& c) const {
    if (!kept(row)) return 0;
    const float g = of[1] * c.gain;
    if (!training) return c.factor * g;
    const float xhat = (of[0] - c.mean) * c.rstd - c.low;
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
  const Data x = t.training ? t.x : Data();
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
