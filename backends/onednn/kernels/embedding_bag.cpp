// Sums rows of several tables, selected by id.
#include "src/ops/embedding_bag.h"

#include <algorithm>
#include <cmath>

#include "backends/onednn/blocks.h"
#include "backends/onednn/kernels/elementwise_steps.h"
#include "backends/onednn/kernels/kernels.h"

namespace keel::onednn {
namespace {

// The row of a place's table, or null for an id outside of it.
const float* row_of(const float* tables, const EmbeddingBagSizes& sizes, std::int64_t place,
                    std::int64_t id) {
  if (id < 0 || id >= sizes.vocabulary) return nullptr;
  return tables + (place * sizes.vocabulary + id) * sizes.width;
}

void forward(const Binding& b, const EmbeddingBagSizes& sizes, std::int64_t first) {
  const float* tables = b.inputs[EmbeddingBagInput::kTables].as<float>();
  const std::int32_t* ids = b.inputs[EmbeddingBagInput::kIds].as<std::int32_t>();
  float* y = b.outputs[0].as<float>();
  const auto n = std::size_t(sizes.width);
  const std::int64_t block = kBlockElements / std::max<std::int64_t>(sizes.width, 1) + 1;
  parallel_range(sizes.rows, block, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      float* sum = y + i * sizes.width;
      std::fill_n(sum, n, 0.0f);
      for (std::int64_t k = 0; k < sizes.places; ++k) {
        const float* row = row_of(tables, sizes, k, ids[i * sizes.places + k] - first);
        if (row) {
          run_step(EwCode::kAdd, {{{sum}, {row}, {}}, sum, n});
        } else {
          std::fill_n(sum, n, NAN);
        }
      }
    }
  });
}

}  // namespace

Prepared prepare_embedding_bag(const NodeContext& context) {
  using In = EmbeddingBagInput;
  const EmbeddingBagSizes sizes =
      embedding_bag_sizes(context.input(In::kTables).shape, context.input(In::kIds).shape);
  const std::int64_t first = context.attrs<EmbeddingBagAttrs>().first;
  return kernel_of([=](const Binding& b) { forward(b, sizes, first); });
}

}  // namespace keel::onednn
