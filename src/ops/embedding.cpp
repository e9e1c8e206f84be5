#include "src/ops/embedding.h"

namespace keel {
namespace {

using Types = std::vector<TensorType>;

Shape with_width(const Shape& ids, std::int64_t width) {
  std::vector<std::int64_t> sizes(ids.sizes().begin(), ids.sizes().end());
  sizes.push_back(width);
  return Shape(sizes);
}

Types infer(const InferContext& c) {
  using In = EmbeddingInput;
  const Shape& table = c.shape(In::kTable);
  c.expect_floating(In::kTable, "table");
  c.expect(table.rank() == 2, "table", "(vocabulary, width)", table.text());
  c.expect_dtype(In::kIds, "ids", DType::kI32);
  return {{c.dtype(In::kTable), with_width(c.shape(In::kIds), table[1])}};
}

Types infer_backward(const InferContext& c) {
  using In = EmbeddingBackwardInput;
  const Shape& dy = c.shape(In::kDy);
  c.expect_dtype(In::kIds, "ids", DType::kI32);
  c.expect(dy.rank() >= 1, "dy", "(..., width)", dy.text());
  c.expect_shape(In::kDy, "dy", with_width(c.shape(In::kIds), dy.back()));
  return {{c.dtype(In::kDy), {c.attrs.as<EmbeddingBackwardAttrs>().vocabulary, dy.back()}}};
}

void backward(BackwardContext& c) {
  using In = EmbeddingInput;
  if (!c.needs(In::kTable)) return;
  const EmbeddingBackwardAttrs attrs{c.attrs().as<EmbeddingAttrs>().padding_id,
                                     c.graph.shape(c.input(In::kTable))[0]};
  c.set(In::kTable, c.graph.add(kEmbeddingBackward, {c.input(In::kIds), c.grad()}, attrs));
}

}  // namespace

const OpInfo kEmbedding{.name = "embedding",
                        .inputs = {"table", {"ids", DType::kI32}},
                        .attrs = EmbeddingAttrs{},
                        .infer = infer,
                        .backward = backward,
                        .gradient = GradientKind::kExact};
const OpInfo kEmbeddingBackward{.name = "embedding_backward",
                                .inputs = {{"ids", DType::kI32}, "dy"},
                                .attrs = EmbeddingBackwardAttrs{},
                                .infer = infer_backward};

namespace ops {

Value embedding(Graph& g, Value table, Value ids, std::int64_t padding_id) {
  return g.add(kEmbedding, {table, ids}, EmbeddingAttrs{padding_id});
}

}  // namespace ops
}  // namespace keel
