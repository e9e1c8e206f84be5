// Embedding lookup: selects rows of a table by id; the backward sums the gradients of each row.
#include "src/ops/embedding.h"

#include <algorithm>
#include <cmath>

#include "backends/onednn/blocks.h"
#include "backends/onednn/kernels/elementwise_steps.h"
#include "backends/onednn/kernels/kernels.h"

namespace keel::onednn {
namespace {

// Columns of the gradient that one block adds up: wide enough that a piece of a row is some cache
// lines long.
constexpr std::int64_t kColumns = 64;

struct Lookup {
  std::int64_t ids, vocabulary, width, padding_id;

  bool is_padding(std::int32_t id) const { return padding_id >= 0 && id == padding_id; }
  bool is_in_table(std::int32_t id) const { return id >= 0 && id < vocabulary; }
};

void forward(const Binding& b, const Lookup& op) {
  const float* table = b.inputs[EmbeddingInput::kTable].as<float>();
  const std::int32_t* ids = b.inputs[EmbeddingInput::kIds].as<std::int32_t>();
  float* y = b.outputs[0].as<float>();
  const std::int64_t block = kBlockElements / std::max<std::int64_t>(op.width, 1) + 1;
  parallel_range(op.ids, block, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      float* row = y + i * op.width;
      if (op.is_padding(ids[i])) {
        std::fill_n(row, op.width, 0.0f);
      } else if (!op.is_in_table(ids[i])) {
        std::fill_n(row, op.width, NAN);
      } else {
        std::copy_n(table + ids[i] * op.width, op.width, row);
      }
    }
  });
}

// Blocks are made of columns: each visits all ids in their order and no two touch one element.
void backward(const Binding& b, const Lookup& op) {
  const std::int32_t* ids = b.inputs[EmbeddingBackwardInput::kIds].as<std::int32_t>();
  const float* dy = b.inputs[EmbeddingBackwardInput::kDy].as<float>();
  float* dtable = b.outputs[0].as<float>();
  parallel_range(
      op.vocabulary * op.width, 4 * kBlockElements,
      [&](std::int64_t begin, std::int64_t end) { std::fill(dtable + begin, dtable + end, 0.0f); });
  const std::int64_t block = op.ids * op.width <= kBlockElements ? op.width : kColumns;
  parallel_range(op.width, block, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = 0; i < op.ids; ++i) {
      if (!op.is_in_table(ids[i]) || op.is_padding(ids[i])) continue;
      float* sum = dtable + ids[i] * op.width + begin;
      const float* part = dy + i * op.width + begin;
      run_step(EwCode::kAdd, {{{sum}, {part}, {}}, sum, std::size_t(end - begin)});
    }
  });
}

}  // namespace

Prepared prepare_embedding(const NodeContext& context) {
  const Shape& table = context.input(EmbeddingInput::kTable).shape;
  const Lookup op{context.input(EmbeddingInput::kIds).shape.elements(), table[0], table[1],
                  context.attrs<EmbeddingAttrs>().padding_id};
  return kernel_of([op](const Binding& b) { forward(b, op); });
}

Prepared prepare_embedding_backward(const NodeContext& context) {
  const Shape& table = context.output().shape;
  const Lookup op{context.input(EmbeddingBackwardInput::kIds).shape.elements(), table[0], table[1],
                  context.attrs<EmbeddingBackwardAttrs>().padding_id};
  return kernel_of([op](const Binding& b) { backward(b, op); });
}

}  // namespace keel::onednn
