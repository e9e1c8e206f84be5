// The noise behind a batch norm: every element draws its channel's and its own numbers again.
#include "backends/cuda/kernels/kernels.h"
#include "backends/cuda/kernels/norm/columns.cuh"
#include "src/ops/norm_noise.h"

namespace keel::cuda {
namespace {

// A normal number as Philox::normal gives it, from two uniform ones.
__device__ double normal(double first, double second) {
  return sqrt(-2.0 * log1p(-first)) * cos(6.283185307179586 * second);
}

// y = S * x + M, or without the shift y = S * x; rows left out pass as they are.
struct Noise {
  static constexpr int kTensors = 1;
  NormNoiseAttrs attrs;
  Global<const float> tensors[kTensors];  // x
  Global<const std::int32_t> step;
  KeptRows kept;
  Global<float> out;
  std::int64_t channels;
  bool shifts;

  struct Channel {
    std::int64_t index;
    UnitNoise unit;
  };
  __device__ Channel channel(std::int64_t c) const {
    return {c, unit_noise(attrs, attrs.random(step[0]), c)};
  }
  __device__ float operator()(const float (&of)[kTensors], std::int64_t row,
                              const Channel& c) const {
    if (!kept(row)) return of[0];
    const Philox random = attrs.random(step[0]);
    const auto block = static_cast<std::uint64_t>(row * channels + c.index);
    const Philox4 words = random.block(block);
    const auto uniform = [&](int word) { return (words[std::size_t(word)] >> 8) * 0x1p-24; };
    const double s = c.unit.v + attrs.r_std * normal(uniform(2), uniform(3));
    const double m = shifts ? c.unit.m + attrs.r_mean * (2 * uniform(0) - 1) : 0;
    return float(of[0] * s + m);
  }
};

Prepared prepare(const NodeContext& context, bool shifts) {
  const auto attrs = context.attrs<NormNoiseAttrs>();
  const ColumnSizes sizes = column_sizes(context.input(0).shape);
  return kernel_of([=](const Binding& b) {
    map_columns(sizes, Noise{attrs,
                             {input(b.inputs[0])},
                             global<const std::int32_t>(b.inputs[1]),
                             kept_rows(b.inputs[2]),
                             output(b.outputs[0]),
                             sizes.channels,
                             shifts});
  });
}

}  // namespace

Prepared prepare_norm_noise(const NodeContext& context) { return prepare(context, true); }
Prepared prepare_norm_noise_backward(const NodeContext& context) { return prepare(context, false); }

}  // namespace keel::cuda
