// Sums rows of several tables, selected by id.
#include "src/ops/embedding_bag.h"

#include <cmath>

#include "backends/reference/kernels/kernels.h"

namespace keel::reference {
namespace {

// y[i] = sum over k of tables[k, ids[i, k] - first]. tables (places vocabulary, width).
void forward(const Binding& b, const EmbeddingBagSizes& sizes, std::int64_t first) {
  using In = EmbeddingBagInput;
  const Matrix tables = matrix(b.inputs[In::kTables], sizes.places * sizes.vocabulary, sizes.width);
  const std::int32_t* ids = b.inputs[In::kIds].as<std::int32_t>();
  Matrix y = matrix(b.outputs[0], sizes.rows, sizes.width);
  y.setZero();
  for (std::int64_t i = 0; i < sizes.rows; ++i) {
    for (std::int64_t k = 0; k < sizes.places; ++k) {
      const std::int64_t id = ids[i * sizes.places + k] - first;
      if (id < 0 || id >= sizes.vocabulary) {
        y.row(i).setConstant(NAN);
      } else {
        y.row(i) += tables.row(k * sizes.vocabulary + id);
      }
    }
  }
}

}  // namespace

Prepared prepare_embedding_bag(const NodeContext& context) {
  using In = EmbeddingBagInput;
  const EmbeddingBagSizes sizes =
      embedding_bag_sizes(context.input(In::kTables).shape, context.input(In::kIds).shape);
  const std::int64_t first = context.attrs<EmbeddingBagAttrs>().first;
  return kernel_of([=](const Binding& b) { forward(b, sizes, first); });
}

}  // namespace keel::reference
