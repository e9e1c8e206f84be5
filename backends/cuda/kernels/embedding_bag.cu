// Sums rows of several tables, selected by id.
#include <cmath>

#include "backends/cuda/device.h"
#include "backends/cuda/kernels/kernels.h"
#include "src/ops/embedding_bag.h"

namespace keel::cuda {
namespace {

// A thread adds up one element of y.
__global__ void add_lookups(EmbeddingBagSizes sizes, std::int64_t first, Global<const float> tables,
                            Global<const std::int32_t> ids, Global<float> y) {
  for (std::int64_t e = grid_thread(); e < sizes.rows * sizes.width; e += grid_threads()) {
    const std::int64_t row = e / sizes.width, column = e % sizes.width;
    float sum = 0;
    for (std::int64_t k = 0; k < sizes.places; ++k) {
      const std::int64_t id = ids[row * sizes.places + k] - first;
      const bool is_in_table = id >= 0 && id < sizes.vocabulary;
      sum += is_in_table ? tables[(k * sizes.vocabulary + id) * sizes.width + column] : NAN;
    }
    y[e] = sum;
  }
}

}  // namespace

Prepared prepare_embedding_bag(const NodeContext& context) {
  using In = EmbeddingBagInput;
  const EmbeddingBagSizes sizes =
      embedding_bag_sizes(context.input(In::kTables).shape, context.input(In::kIds).shape);
  const std::int64_t first = context.attrs<EmbeddingBagAttrs>().first;
  return kernel_of([=](const Binding& b) {
    launch(add_lookups, one_thread_each(sizes.rows * sizes.width), sizes, first,
           global<const float>(b.inputs[In::kTables]),
           global<const std::int32_t>(b.inputs[In::kIds]), global<float>(b.outputs[0]));
  });
}

}  // namespace keel::cuda
