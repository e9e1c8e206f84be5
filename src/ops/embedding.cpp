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
  c.expect_floating(0, "table");
  c.expect(c.shape(0).rank() == 2, "table", "(vocabulary, width)", c.shape(0).text());
  c.expect_dtype(1, "ids", DType::kI32);
  return {{c.dtype(0), with_width(c.shape(1), c.shape(0)[1])}};
}

Types infer_backward(const InferContext& c) {
  c.expect_dtype(0, "ids", DType::kI32);
  c.expect(c.shape(1).rank() >= 1, "dy", "(..., width)", c.shape(1).text());
  c.expect_shape(1, "dy", with_width(c.shape(0), c.shape(1).back()));
  return {{c.dtype(1), {c.attrs.as<EmbeddingBackwardAttrs>().vocabulary, c.shape(1).back()}}};
}

void backward(BackwardContext& c) {
  if (!c.needs(0)) return;
  const EmbeddingBackwardAttrs attrs{c.attrs().as<EmbeddingAttrs>().padding_id,
                                     c.graph.shape(c.input(0))[0]};
  c.set(0, c.graph.add(kEmbeddingBackward, {c.input(1), c.grad()}, attrs));
}

}  // namespace

const OpInfo kEmbedding{
    .name = "embedding", .infer = infer, .backward = backward, .gradient = GradientKind::kExact};
const OpInfo kEmbeddingBackward{.name = "embedding_backward", .infer = infer_backward};

namespace ops {

Value embedding(Graph& g, Value table, Value ids, std::int64_t padding_id) {
  return g.add(kEmbedding, {table, ids}, EmbeddingAttrs{padding_id});
}

}  // namespace ops
}  // namespace keel
