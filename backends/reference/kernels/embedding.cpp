// Embedding lookup: selects rows of a table by id; the backward sums the gradients of each row.
#include "src/ops/embedding.h"

#include <cmath>

#include "backends/reference/kernels/kernels.h"

namespace keel::reference {
namespace {

bool is_padding(std::int32_t id, std::int64_t padding_id) {
  return padding_id >= 0 && id == padding_id;
}

// y[i] = table[ids[i]]. table (vocabulary, width), y (ids, width).
void forward(const Binding& b, std::int64_t padding_id) {
  using In = EmbeddingInput;
  const Shape& shape = b.inputs[In::kTable].type.shape;
  const Matrix table = matrix(b.inputs[In::kTable], shape[0], shape[1]);
  const std::int32_t* ids = b.inputs[In::kIds].as<std::int32_t>();
  Matrix y = matrix(b.outputs[0], b.inputs[In::kIds].elements(), shape[1]);
  for (Eigen::Index i = 0; i < y.rows(); ++i) {
    if (is_padding(ids[i], padding_id)) {
      y.row(i).setZero();
    } else if (ids[i] < 0 || ids[i] >= table.rows()) {
      y.row(i).setConstant(NAN);
    } else {
      y.row(i) = table.row(ids[i]);
    }
  }
}

// dtable[v] = sum over i with ids[i] = v of dy[i].
void backward(const Binding& b, std::int64_t padding_id) {
  using In = EmbeddingBackwardInput;
  const std::int32_t* ids = b.inputs[In::kIds].as<std::int32_t>();
  const Shape& shape = b.outputs[0].type.shape;
  const Matrix dy = matrix(b.inputs[In::kDy], b.inputs[In::kIds].elements(), shape[1]);
  Matrix dtable = matrix(b.outputs[0], shape[0], shape[1]);
  dtable.setZero();
  for (Eigen::Index i = 0; i < dy.rows(); ++i) {
    const bool is_in_table = ids[i] >= 0 && ids[i] < dtable.rows();
    if (is_in_table && !is_padding(ids[i], padding_id)) dtable.row(ids[i]) += dy.row(i);
  }
}

}  // namespace

Prepared prepare_embedding(const NodeContext& context) {
  const std::int64_t padding_id = context.attrs<EmbeddingAttrs>().padding_id;
  return kernel_of([=](const Binding& b) { forward(b, padding_id); });
}

Prepared prepare_embedding_backward(const NodeContext& context) {
  const std::int64_t padding_id = context.attrs<EmbeddingBackwardAttrs>().padding_id;
  return kernel_of([=](const Binding& b) { backward(b, padding_id); });
}

}  // namespace keel::reference
