// Column norms that subtract nothing: y and dx are linear in x, dy and per-channel factors.
#pragma once

#include "backends/cuda/kernels/norm/columns.cuh"
#include "src/ops/norm/norm.h"

namespace keel::cuda {

// Sums over the kept elements of a channel, and over those left out.
struct SquareSums {
  double count, squares, padded_count, padded_squares;
};

struct UncentredTerms : PlainSums {
  static constexpr int kTensors = 1, kSums = 4;
  Global<const float> tensors[kTensors];  // x
  KeptRows kept;

  UncentredTerms(Global<const float> x, KeptRows kept) : tensors{x}, kept(kept) {}
  __device__ void operator()(const float (&of)[kTensors], std::int64_t row, std::int64_t,
                             double (&sums)[kSums]) const {
    const double square = double(of[0]) * of[0];
    if (kept(row)) {
      sums[0] += 1;
      sums[1] += square;
    } else {
      sums[2] += 1;
      sums[3] += square;
    }
  }
};

// Calls finish(channel, SquareSums).
template <class Finish>
struct FinishSquares {
  Finish finish;
  __device__ void operator()(std::int64_t c, const double (&s)[4]) const {
    finish(c, SquareSums{s[0], s[1], s[2], s[3]});
  }
};

// Sums of dy and of dy * x over the kept elements of a channel, and of dy * x over the others.
struct UncentredGradientSums {
  double count, dy, dy_x, padded_count, padded_dy_x;
};

struct UncentredGradientTerms : PlainSums {
  static constexpr int kTensors = 2, kSums = 5;
  Global<const float> tensors[kTensors];  // x, dy
  KeptRows kept;

  UncentredGradientTerms(Global<const float> x, Global<const float> dy, KeptRows kept)
      : tensors{x, dy}, kept(kept) {}
  __device__ void operator()(const float (&of)[kTensors], std::int64_t row, std::int64_t,
                             double (&sums)[kSums]) const {
    const double product = double(of[1]) * of[0];
    if (kept(row)) {
      sums[0] += 1;
      sums[1] += of[1];
      sums[2] += product;
    } else {
      sums[3] += 1;
      sums[4] += product;
    }
  }
};

// Calls finish(channel, UncentredGradientSums).
template <class Finish>
struct FinishUncentredGradient {
  Finish finish;
  __device__ void operator()(std::int64_t c, const double (&s)[5]) const {
    finish(c, UncentredGradientSums{s[0], s[1], s[2], s[3], s[4]});
  }
};

// y = x * scale * factor * gain + bias, but 0 in rows left out. `factor` may be absent.
struct ScaleColumns {
  static constexpr int kTensors = 1;
  Global<const float> tensors[kTensors];  // x
  Global<const float> scale, factor, gain, bias;
  KeptRows kept;
  Global<float> out;

  struct Channel {
    float scale, factor, bias;
  };
  __device__ Channel channel(std::int64_t c) const {
    return {scale[c], factor.get(c, 1) * gain.get(c, 1), bias.get(c, 0)};
  }
  __device__ float operator()(const float (&of)[kTensors], std::int64_t row,
                              const Channel& c) const {
    return kept(row) ? of[0] * c.scale * c.factor + c.bias : 0;
  }
};

// dx = rdx * (g - slope * x * scale) with g = dy * factor * gain, or rdx * g without a slope. In
// rows left out dx is 0.
struct ScaleColumnsGradient {
  static constexpr int kTensors = 2;
  Global<const float> tensors[kTensors];  // x, dy
  Global<const float> scale, rdx, factor, gain;
  Global<const double> slope;
  KeptRows kept;
  Global<float> out;

  struct Channel {
    float scale, rdx, factor, slope;
  };
  __device__ Channel channel(std::int64_t c) const {
    return {scale[c], rdx[c], factor.get(c, 1) * gain.get(c, 1), float(slope.get(c, 0))};
  }
  __device__ float operator()(const float (&of)[kTensors], std::int64_t row,
                              const Channel& c) const {
    if (!kept(row)) return 0;
    const float g = of[1] * c.factor;
    return c.rdx * (slope ? g - c.slope * (of[0] * c.scale) : g);
  }
};

// The tensors of a forward and a backward of columns that subtract nothing; `factor` may be absent.
struct UncentredForward {
  Global<const float> x, scale, factor, gain, bias;
  KeptRows kept;
  Global<float> y;
};
struct UncentredBackward {
  Global<const float> x, dy, scale, rdx, factor, gain;
  KeptRows kept;
  Global<float> dx;
  bool training;
};

// The workspace of either holds the partial sums, and that of the backward the slope, too.
inline ColumnScratch uncentred_scratch(const Binding& b, const ColumnSizes& sizes, bool backward) {
  return ColumnScratch(b, sizes, backward ? UncentredGradientTerms::kSums : UncentredTerms::kSums);
}
inline std::int64_t uncentred_workspace(const ColumnSizes& sizes, bool backward) {
  return backward ? ColumnScratch::bytes(sizes, UncentredGradientTerms::kSums, 1)
                  : ColumnScratch::bytes(sizes, UncentredTerms::kSums, 0);
}

// Calls statistics(channel, SquareSums) on the device or, in evaluation, statistics(channel).
template <class Statistics>
void run_uncentred_statistics(const Binding& b, const ColumnSizes& sizes, KeptRows kept,
                              const Statistics& statistics, bool training) {
  if (!training) return each_channel(sizes, statistics);
  column_sums(sizes, UncentredTerms(input(b.inputs[NormInput::kX]), kept),
              uncentred_scratch(b, sizes, false).partial(), FinishSquares<Statistics>{statistics});
}

// Calls gradients(channel, UncentredGradientSums) on the device, which in training leaves the slope
// in vector 0 of the scratch, then writes dx.
template <class Gradients>
void run_uncentred_backward(const Binding& b, const ColumnSizes& sizes, const UncentredBackward& t,
                            const Gradients& gradients) {
  const ColumnScratch scratch = uncentred_scratch(b, sizes, true);
  column_sums(sizes, UncentredGradientTerms(t.x, t.dy, t.kept), scratch.partial(),
              FinishUncentredGradient<Gradients>{gradients});
  const auto slope = t.training ? scratch.vector(0) : Global<double>();
  map_columns(sizes, ScaleColumnsGradient{{t.training ? t.x : Global<const float>(), t.dy},
                                          t.scale,
                                          t.rdx,
                                          t.factor,
                                          t.gain,
                                          slope,
                                          t.kept,
                                          t.dx});
}

}  // namespace keel::cuda
