// Centred rows with gain and bias. Layer norm has one gain and bias for every element of a row;
// group norm, whose rows are groups of channels, has one for every channel.
#pragma once

#include "backends/cuda/kernels/norm/persistent_rows.cuh"

namespace keel::cuda {

// Values along a row that is a group of a sample: one value for each element of the group or, for
// images, for each of its channels.
template <bool kIsImage>
struct AlongGroup {
  AlongRow channels;
  std::int64_t inner;

  __device__ Group4 group4(std::int64_t column, int count, bool is_aligned) const {
    if constexpr (!kIsImage) return channels.group4(column, count, is_aligned);
    const auto value = [&](std::int64_t at) {
      return channels.values.get(channels.first + at / inner, channels.otherwise);
    };
    if (count == 4 && inner % 4 == 0) {  // all of one channel
      const float shared = value(column);
      return {shared, shared, shared, shared};
    }
    Group4 group4{};
    for (int i = 0; i < count; ++i) group4.at[i] = value(column + i);
    return group4;
  }
};

template <bool kIsImage>
struct Affine {
  Global<const float> gains, biases;
  GroupSizes sizes;

  __device__ AlongGroup<kIsImage> gain(std::int64_t row) const {
    return {{gains, 1, first_channel(row)}, sizes.inner};
  }
  __device__ AlongGroup<kIsImage> bias(std::int64_t row) const {
    return {{biases, 0, first_channel(row)}, sizes.inner};
  }
  __device__ std::int64_t first_channel(std::int64_t row) const {
    return Divided(row, sizes.groups).rest * sizes.channels;
  }
  __device__ float operator()(float xhat, float gain, float bias) const {
    return xhat * gain + bias;
  }
};

// g = dy * gain.
template <bool kIsImage>
struct TimesGain : Affine<kIsImage> {
  __device__ float operator()(float dy, float, float gain) const { return dy * gain; }
};

inline constexpr int kAffineSums = 2;  // of a channel: dgain and dbias

inline ColumnSizes affine_columns(const GroupSizes& s) {
  return {s.samples, s.groups * s.channels, s.inner};
}
inline std::int64_t fine_bytes(const GroupSizes& s) {
  return aligned_bytes(s.samples * s.groups * std::int64_t{sizeof(float)});
}
inline std::int64_t affine_workspace(const GroupSizes& s) {
  if (can_sweep(s)) return sweep_sums(s) * std::int64_t{sizeof(double)};
  return fine_bytes(s) +
         partial_sums(affine_columns(s), kAffineSums) * std::int64_t{sizeof(double)};
}

// Runs the forward of a node whose inputs and outputs are AffineInput and CentredOutput.
template <bool kIsImage>
void run_affine_forward(const Binding& b, const GroupSizes& s, const NormStatistic& statistic) {
  using In = AffineInput;
  using Out = CentredOutput;
  const RowSizes rows{s.samples * s.groups, s.width()};
  run_centred_forward(
      {Data(b.inputs[In::kX]), Result(b.outputs[Out::kY]), output(b.outputs[Out::kMean]),
       output(b.outputs[Out::kRstd]), rows, device_statistic(statistic)},
      Affine<kIsImage>{input(b.inputs[In::kGain]), input(b.inputs[In::kBias]), s});
}

// Writes dgain and dbias of rows that cannot be swept. It must run before dx is written,
// because dx may overwrite dy. Its kernels are compiled once, in layer_norm.cu.
void run_affine_gradients(const Binding& b, const CentredBackward& args, const GroupSizes& s);

// Runs the backward of a node with the places CentredAffineBackwardInput and AffineGradient.
template <bool kIsImage>
void run_affine_backward(const Binding& b, const GroupSizes& s, const NormStatistic& statistic) {
  using In = CentredAffineBackwardInput;
  using Out = AffineGradient;
  const Data x(b.inputs[In::kX]), dy(b.inputs[In::kDy]);
  const auto gain = input(b.inputs[In::kGain]), mean = input(b.inputs[In::kMean]),
             rstd = input(b.inputs[In::kRstd]);
  const Result dx(b.outputs[Out::kDx]);
  const auto dgain = output(b.outputs[Out::kDgain]), dbias = output(b.outputs[Out::kDbias]);
  const bool has_parameters = dgain || dbias;
  if constexpr (!kIsImage) {
    if (has_parameters && can_sweep(s)) {
      return run_sweep<true>(b, {x, dy, gain, mean, rstd, dx, dgain, dbias}, s,
                             device_statistic(statistic));
    }
  }
  const RowSizes rows{s.samples * s.groups, s.width()};
  const CentredBackward args{x, dy, mean, rstd, dx, rows, device_statistic(statistic)};
  if (has_parameters) run_affine_gradients(b, args, s);
  run_centred_backward(args, TimesGain<kIsImage>{{gain, {}, s}});
}

// The two for rows with one gain and one bias for every element: layer norm, and group norm where a
// channel has a single element. Their kernels are compiled once, in layer_norm.cu.
void run_affine_rows(const Binding& b, const GroupSizes& s, const NormStatistic& statistic);
void run_affine_rows_backward(const Binding& b, const GroupSizes& s,
                              const NormStatistic& statistic);

}  // namespace keel::cuda
