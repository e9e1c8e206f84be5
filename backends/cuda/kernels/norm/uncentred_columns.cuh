// Column norms that subtract nothing: y and dx are linear in x, dy and per-channel factors.
#pragma once

#include "backends/cuda/kernels/norm/columns.cuh"
#include "src/ops/column_gradient_sums.h"
#include "src/ops/column_moments.h"

namespace keel::cuda {

// Sums of squares of a channel over the kept elements, and over all elements.
struct SquareSums {
  double count, all, squares, all_squares;
};

// In the place of x stands x itself, or x times a scale of its row's group of columns.
struct Unscaled {
  struct Group {};
  __device__ static Group group(std::int64_t) { return {}; }
  __device__ static float of(float x, const TileStep&, Group) { return x; }
};
struct RowScales {
  Global<const float> scales;  // (rows, groups)
  std::int64_t groups, width;  // width of a group

  struct Group {
    std::int64_t index;
  };
  __device__ Group group(std::int64_t c) const {
    return {groups == 1 ? 0 : Divided(c, width).quotient};
  }
  __device__ float of(float x, const TileStep& step, Group group) const {
    const float scale = scales[step.row * groups + group.index];
    return step.exists ? x * scale : 0;
  }
};

template <class Scales>
struct UncentredTerms : PlainSums {
  static constexpr int kTensors = 1, kSums = 4;
  Data tensors[kTensors];  // x
  KeptRows kept;

  Scales scales;

  UncentredTerms(Data x, KeptRows kept, const Scales& scales)
      : tensors{x}, kept(kept), scales(scales) {}

  using Channel = typename Scales::Group;
  __device__ Channel channel(std::int64_t c) const { return scales.group(c); }
  // The products are exact in double.
  __device__ void operator()(const float (&of)[kTensors], const TileStep& step, const Channel& c,
                             double (&sums)[kSums]) const {
    const double x = scales.of(of[0], step, c), kept = step.is_left_out ? 0 : x;
    sums[1] = fma(kept, kept, sums[1]);
    if (step.is_left_out) sums[3] = fma(x, x, sums[3]);
  }
  __device__ static void count(double kept, double left_out, double (&sums)[kSums]) {
    sums[0] += kept;
    sums[2] += left_out;
  }
};

// Calls finish(channel, SquareSums).
template <class Finish>
struct FinishSquares {
  Finish finish;
  __device__ void prefetch(std::int64_t c) const {
    if constexpr (requires { finish.prefetch(c); }) finish.prefetch(c);
  }
  __device__ void operator()(std::int64_t c, const double (&s)[4]) const {
    finish(c, SquareSums{s[0], s[0] + s[2], s[1], s[1] + s[3]});
  }
};
template <class Finish>
struct GivenSquares {
  GivenSums given;
  bool has_all;
  Finish finish;
  __device__ void operator()(std::int64_t c) const {
    using Row = SquareRow;
    finish(c, SquareSums{given.at(Row::kCount, c), given.at(Row::kAll, c),
                         given.at(Row::kSquares, c), has_all ? given.at(Row::kAllSquares, c) : 0});
  }
};

// Sums of a channel: dy and dy * xhat over the kept elements, and dy * xhat over all elements.
struct UncentredGradientSums {
  double count, all, dy, dy_xhat, all_dy_xhat;
};

template <class Scales>
struct UncentredGradientTerms : PlainSums {
  static constexpr int kTensors = 2, kSums = 5;
  Data tensors[kTensors];  // x, dy
  KeptRows kept;

  Scales scales;

  UncentredGradientTerms(Data x, Data dy, KeptRows kept, const Scales& scales)
      : tensors{x, dy}, kept(kept), scales(scales) {}

  using Channel = typename Scales::Group;
  __device__ Channel channel(std::int64_t c) const { return scales.group(c); }
  __device__ void operator()(const float (&of)[kTensors], const TileStep& step, const Channel& c,
                             double (&sums)[kSums]) const {
    const double x = scales.of(of[0], step, c), dy = step.is_left_out ? 0 : of[1];
    sums[1] += dy;
    if (step.is_left_out) {
      sums[4] = fma(double(of[1]), x, sums[4]);
    } else {
      sums[2] = fma(dy, x, sums[2]);
    }
  }
  __device__ static void count(double kept, double left_out, double (&sums)[kSums]) {
    sums[0] += kept;
    sums[3] += left_out;
  }
};

// Calls finish(channel, UncentredGradientSums).
template <class Finish>
struct FinishUncentredGradient {
  Global<const float> scale;
  Finish finish;
  __device__ void prefetch(std::int64_t c) const {
    scale.prefetch(c);
    if constexpr (requires { finish.prefetch(c); }) finish.prefetch(c);
  }
  __device__ void operator()(std::int64_t c, const double (&s)[5]) const {
    const double factor = scale[c];
    finish(c,
           UncentredGradientSums{s[0], s[0] + s[3], s[1], s[2] * factor, (s[2] + s[4]) * factor});
  }
};
template <class Finish>
struct GivenUncentredGradient {
  GivenSums given;
  bool has_all;
  Finish finish;
  __device__ void operator()(std::int64_t c) const {
    using Row = UncentredSumRow;
    finish(c, UncentredGradientSums{given.at(Row::kCount, c), given.at(Row::kAll, c),
                                    given.at(Row::kDy, c), given.at(Row::kDyXhat, c),
                                    has_all ? given.at(Row::kAllDyXhat, c) : 0});
  }
};

// y = x * scale * factor * gain + bias, but 0 in the rows left out. `factor` may be absent.
template <class Scales = Unscaled>
struct ScaleColumns {
  static constexpr int kTensors = 1;
  Data tensors[kTensors];  // x
  Global<const float> scale, factor, gain, bias;
  KeptRows kept;
  Result out;
  Scales scales = {};

  struct Channel {
    float scale, factor, bias;
    typename Scales::Group group;
  };
  __device__ Channel channel(std::int64_t c) const {
    return {scale[c], factor.get(c, 1) * gain.get(c, 1), bias.get(c, 0), scales.group(c)};
  }
  __device__ float operator()(const float (&of)[kTensors], const TileStep& step,
                              const Channel& c) const {
    return step.is_kept ? scales.of(of[0], step, c.group) * c.scale * c.factor + c.bias : 0;
  }
};

// dx = rdx * (g - slope * x * scale) with g = dy * factor * gain; without a slope dx = rdx * g. In
// the rows left out dx is 0.
struct ScaleColumnsGradient {
  static constexpr int kTensors = 2;
  Data tensors[kTensors];  // x, dy
  Global<const float> scale, rdx, factor, gain;
  Global<const double> slope;
  KeptRows kept;
  Result out;

  struct Channel {
    float scale, rdx, factor, slope;
  };
  __device__ Channel channel(std::int64_t c) const {
    return {scale[c], rdx[c], factor.get(c, 1) * gain.get(c, 1), float(slope.get(c, 0))};
  }
  __device__ float operator()(const float (&of)[kTensors], const TileStep& step,
                              const Channel& c) const {
    if (!step.is_kept) return 0;
    const float g = of[1] * c.factor;
    return c.rdx * (slope ? g - c.slope * (of[0] * c.scale) : g);
  }
};

// The tensors of a backward of columns that subtract no mean. `factor` and the sums may be absent;
// sums are then computed.
struct UncentredBackward {
  Data x, dy;
  Global<const float> scale, rdx, factor, gain;
  KeptRows kept;
  Result dx;
  bool training;
  Global<const double> given;
};

inline constexpr int kUncentredSums = UncentredTerms<Unscaled>::kSums,
                     kUncentredGradientSums = UncentredGradientTerms<Unscaled>::kSums;

// Both workspaces hold the partial sums; that of the backward also holds the slope.
inline ColumnScratch uncentred_scratch(const Binding& b, const ColumnSizes& sizes, bool backward) {
  return ColumnScratch(b, sizes, backward ? kUncentredGradientSums : kUncentredSums);
}
inline std::int64_t uncentred_workspace(const ColumnSizes& sizes, bool backward) {
  return backward ? ColumnScratch::bytes(sizes, kUncentredGradientSums, 1)
                  : ColumnScratch::bytes(sizes, kUncentredSums, 0);
}

// The source of the squares: the kept rows of x, or a node's input if it is present.
struct SquareSource {
  KeptRows kept;
  Global<const double> given;
};

// Calls statistics(channel, SquareSums) on the device.
template <class Statistics, class Scales = Unscaled>
void sum_squares(const Binding& b, const ColumnSizes& sizes, const SquareSource& from,
                 const Statistics& statistics, const Scales& scales = {}) {
  if (from.given) {
    const bool has_all = from.given.size() == SquareRow::kRows * sizes.channels;
    return each_channel(
        sizes, GivenSquares<Statistics>{{from.given, sizes.channels}, has_all, statistics});
  }
  column_sums(sizes, UncentredTerms<Scales>(Data(b.inputs[NormInput::kX]), from.kept, scales),
              uncentred_scratch(b, sizes, false).partial(), FinishSquares<Statistics>{statistics});
}

// The source of a norm's squares, by its places.
template <class In>
SquareSource square_source(const Binding& b) {
  return {kept_rows(b.inputs[In::kMask]), global<const double>(b.inputs[In::kSquares])};
}

// In training statistics(channel, SquareSums), else statistics(channel), by the places of a norm.
template <class In, class Statistics, class Scales = Unscaled>
void run_uncentred_statistics(const Binding& b, const ColumnSizes& sizes, bool training,
                              const Statistics& statistics, const Scales& scales = {}) {
  if (!training) return each_channel(sizes, statistics);
  sum_squares(b, sizes, square_source<In>(b), statistics, scales);
}

// y = x * rstd * factor * gain + bias, with the rstd that the statistics wrote.
template <class In, class Out, class Scales = Unscaled>
void write_uncentred(const Binding& b, const ColumnSizes& sizes, Global<const float> factor = {},
                     const Scales& scales = {}) {
  map_columns(sizes, ScaleColumns<Scales>{{Data(b.inputs[In::kX])},
                                          output(b.outputs[Out::kRstd]),
                                          factor,
                                          input(b.inputs[In::kGain]),
                                          input(b.inputs[In::kBias]),
                                          kept_rows(b.inputs[In::kMask]),
                                          Result(b.outputs[Out::kY]),
                                          scales});
}

// The tensors of a backward by the places of a norm whose dx has the factor `rdx`.
template <class BackIn, class BackOut>
UncentredBackward uncentred_tensors(const Binding& b, bool training, int rdx = BackIn::kRstd) {
  return {Data(b.inputs[BackIn::kX]),
          Data(b.inputs[BackIn::kDy]),
          input(b.inputs[BackIn::kRstd]),
          input(b.inputs[std::size_t(rdx)]),
          {},
          input(b.inputs[BackIn::kGain]),
          kept_rows(b.inputs[BackIn::kMask]),
          Result(b.outputs[BackOut::kDx]),
          training,
          global<const double>(b.inputs[BackIn::kSums])};
}

// Calls gradients(channel, UncentredGradientSums) on the device.
template <class Gradients, class Scales = Unscaled>
void uncentred_sums(const Binding& b, const ColumnSizes& sizes, const UncentredBackward& t,
                    const Gradients& gradients, const Scales& scales = {}) {
  if (t.given) {
    const bool has_all = t.given.size() == UncentredSumRow::kRows * sizes.channels;
    return each_channel(
        sizes, GivenUncentredGradient<Gradients>{{t.given, sizes.channels}, has_all, gradients});
  }
  column_sums(sizes, UncentredGradientTerms<Scales>(t.x, t.dy, t.kept, scales),
              uncentred_scratch(b, sizes, true).partial(),
              FinishUncentredGradient<Gradients>{t.scale, gradients});
}

// Calls gradients(channel, UncentredGradientSums) on the device; in training it leaves the slope in
// vector 0 of the scratch. Then writes dx.
template <class Gradients>
void run_uncentred_backward(const Binding& b, const ColumnSizes& sizes, const UncentredBackward& t,
                            const Gradients& gradients) {
  uncentred_sums(b, sizes, t, gradients);
  const auto slope = t.training ? uncentred_scratch(b, sizes, true).vector(0) : Global<double>();
  map_columns(
      sizes,
      ScaleColumnsGradient{
          {t.training ? t.x : t.dy, t.dy}, t.scale, t.rdx, t.factor, t.gain, slope, t.kept, t.dx});
}

}  // namespace keel::cuda
