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
  Global<const std::int32_t> step, first_row;
  KeptRows kept;
  Result out;
  std::int64_t channels;
  bool shifts;

  struct Channel {
    std::int64_t index;
    float m, v;
    std::int32_t step, first_row;
  };
  // unit_noise, whose two numbers are words of one block.
  __device__ Channel channel(std::int64_t c) const {
    const std::int32_t now = step[0];
    const Philox4 words =
        DevicePhilox(attrs, now).block(row_block(0xFFFFFFFF, 4 * std::uint64_t(c)));
    return {c, float(attrs.n_mean * (2.0 * uniform(words[0]) - 1)),
            float(1 + (attrs.n_std - 1) * uniform(words[1])), now, first_row[0]};
  }
  // In float, which takes a part of the time of double; random_normal.h allows what that rounds.
  __device__ float operator()(const float (&of)[kTensors], const TileStep& step,
                              const Channel& c) const {
    if (!step.is_kept) return of[0];
    const DevicePhilox random(attrs, c.step);
    const std::int64_t row =
        attrs.positions == 1 ? step.row : Divided(step.row, attrs.positions).quotient;
    const std::uint64_t first = 4 * std::uint64_t((step.row - row * attrs.positions) * channels);
    const Philox4 words = random.block(
        row_block(std::uint64_t(c.first_row + row), first + 4 * std::uint64_t(c.index)));
    const float s = fmaf(short_normal(words[2], words[3]), float(attrs.r_std), c.v);
    const float u = fmaf(uniform(words[0]), 2.0f, -1.0f);
    return shifts ? fmaf(of[0], s, fmaf(u, float(attrs.r_mean), c.m)) : of[0] * s;
  }
};

Prepared prepare(const NodeContext& context, bool shifts) {
  const auto attrs = context.attrs<NormNoiseAttrs>();
  const ColumnSizes sizes = column_sizes(context.input(In::kX).shape);
  return kernel_of([=](const Binding& b) {
    map_columns(sizes, Noise{attrs,
                             {Data(b.inputs[In::kX])},
                             global<const std::int32_t>(b.inputs[In::kStep]),
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
