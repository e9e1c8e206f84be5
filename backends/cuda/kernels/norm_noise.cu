// The noise after a batch norm: every element draws its own and its channel's numbers again.
#include "backends/cuda/kernels/kernels.h"
#include "backends/cuda/kernels/norm/columns.cuh"
#include "backends/cuda/kernels/random_rows.cuh"
#include "src/ops/norm_noise.h"

namespace keel::cuda {
namespace {

using In = NormNoiseInput;

// y = S * x + M, or without the shift y = S * x; rows left out pass as they are.
struct Noise {
  static constexpr int kTensors = 1;
  NormNoiseAttrs attrs;
  Data tensors[kTensors];  // x
  Global<const std::int32_t> tick, first_row;
  KeptRows kept;
  Result out;
  std::int64_t channels;
  bool shifts;

  struct Channel {
    std::int64_t index;
    UnitNoise unit;
  };
  __device__ Channel channel(std::int64_t c) const {
    return {c, unit_noise(attrs, random_stream(attrs, tick[0]), c)};
  }
  __device__ float operator()(const float (&of)[kTensors], const Turn& turn,
                              const Channel& c) const {
    if (!turn.is_kept) return of[0];
    const DevicePhilox random(attrs, tick[0]);
    const SamplePlace place = sample_place(turn.row, attrs.positions, channels, first_row[0]);
    const std::uint64_t k = place.first + 4 * std::uint64_t(c.index);
    const Philox4 words = random.block(row_block(place.row, k));
    const double s = c.unit.v + attrs.r_std * normal(words[2], words[3]);
    const double m = shifts ? c.unit.m + attrs.r_mean * ((words[0] >> 8) * 0x1p-23 - 1) : 0;
    return float(of[0] * s + m);
  }
};

Prepared prepare(const NodeContext& context, bool shifts) {
  const auto attrs = context.attrs<NormNoiseAttrs>();
  const ColumnSizes sizes = column_sizes(context.input(In::kX).shape);
  return kernel_of([=](const Binding& b) {
    map_columns(sizes, Noise{attrs,
                             {Data(b.inputs[In::kX])},
                             global<const std::int32_t>(b.inputs[In::kTick]),
                             global<const std::int32_t>(b.inputs[In::kFirstRow]),
                             kept_rows(b.inputs[In::kMask]),
                             Result(b.outputs[0]),
                             sizes.channels,
                             shifts});
  });
}

}  // namespace

Prepared prepare_norm_noise(const NodeContext& context) { return prepare(context, true); }
Prepared prepare_norm_noise_backward(const NodeContext& context) { return prepare(context, false); }

}  // namespace keel::cuda
