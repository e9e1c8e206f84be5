// Standard normal numbers, two from a block of random words, sampled in double.
#include "backends/cuda/kernels/kernels.h"
#include "backends/cuda/kernels/random_rows.cuh"
#include "src/ops/random_normal.h"

namespace keel::cuda {
namespace {

using In = RandomNormalInput;

struct RandomNormal {
  RandomNormalAttrs attrs;
  SampledBlocks blocks;
};

__global__ void draw_normal(RandomNormal op, Global<const std::int32_t> step,
                            Global<const std::int32_t> first_row, Global<float> y) {
  const DevicePhilox random(op.attrs, step[0]);
  for (std::int64_t i = grid_thread(); i < op.blocks.total; i += grid_threads()) {
    const SampledBlock block = op.blocks[i];
    const Philox4 words = draw(random, first_row[0], block.row, block.index);
    y[block.first] = float(normal(words[0], words[1]));
    if (block.count == 2) y[block.first + 1] = float(normal(words[2], words[3]));
  }
}

}  // namespace

Prepared prepare_random_normal(const NodeContext& context) {
  const RandomNormal op{context.attrs<RandomNormalAttrs>(),
                        SampledBlocks::of(context.output().shape, 2)};
  return kernel_of([op](const Binding& b) {
    launch(draw_normal, one_thread_each(op.blocks.total), op,
           global<const std::int32_t>(b.inputs[In::kStep]),
           global<const std::int32_t>(b.inputs[In::kFirstRow]), output(b.outputs[0]));
  });
}

}  // namespace keel::cuda
