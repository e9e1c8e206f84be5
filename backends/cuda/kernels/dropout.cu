// Dropout. Four neighbours of a row share a block of random words, so a thread draws the mask of
// four. The backward is the same map, applied to dy.
#include <cmath>

#include "backends/cuda/kernels/kernels.h"
#include "backends/cuda/kernels/random_rows.cuh"
#include "src/ops/dropout.h"

namespace keel::cuda {
namespace {

using In = DropoutInput;

// An element is kept when its 24 random bits are `threshold` or more.
struct Dropout {
  DropoutAttrs attrs;
  SampledBlocks blocks;
  std::uint32_t threshold;
  float factor;

  __device__ float operator()(std::uint32_t word, float x) const {
    return word >> 8 >= threshold ? x * factor : 0;
  }
};

struct DropoutKey {
  Global<const std::int32_t> step, first_row;
};

// Rows of whole blocks: all of them lie at multiples of four elements.
__global__ void drop_groups4(Dropout op, DropoutKey key, Global<const float> x, Global<float> y) {
  const DevicePhilox random(op.attrs, key.step[0]);
  for (std::int64_t i = grid_thread(); i < op.blocks.total; i += grid_threads()) {
    const SampledBlock block = op.blocks[i];
    const Philox4 words = draw(random, key.first_row[0], block.row, block.index);
    const float4 four = x.load4(block.first);
    y.store4(block.first, make_float4(op(words[0], four.x), op(words[1], four.y),
                                      op(words[2], four.z), op(words[3], four.w)));
  }
}

__global__ void drop_elements(Dropout op, DropoutKey key, Global<const float> x, Global<float> y) {
  const DevicePhilox random(op.attrs, key.step[0]);
  for (std::int64_t i = grid_thread(); i < op.blocks.total; i += grid_threads()) {
    const SampledBlock block = op.blocks[i];
    const Philox4 words = draw(random, key.first_row[0], block.row, block.index);
    for (int e = 0; e < block.count; ++e) {
      y[block.first + e] = op(words[std::size_t(e)], x[block.first + e]);
    }
  }
}

}  // namespace

Prepared prepare_dropout(const NodeContext& context) {
  const auto attrs = context.attrs<DropoutAttrs>();
  const Dropout op{attrs, SampledBlocks::of(context.input(In::kX).shape, 4),
                   // uniform >= p, where uniform is the 24 bits times 2^-24.
                   static_cast<std::uint32_t>(std::ceil(attrs.p * 0x1p24)),
                   float(1 / (1 - attrs.p))};
  return kernel_of([op](const Binding& b) {
    const DropoutKey key{global<const std::int32_t>(b.inputs[In::kStep]),
                         global<const std::int32_t>(b.inputs[In::kFirstRow])};
    launch(op.blocks.rows.width % 4 == 0 ? drop_groups4 : drop_elements,
           one_thread_each(op.blocks.total), op, key, input(b.inputs[In::kX]),
           output(b.outputs[0]));
  });
}

}  // namespace keel::cuda
