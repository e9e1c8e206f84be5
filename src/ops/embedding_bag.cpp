#include "src/ops/embedding_bag.h"

namespace keel {
namespace {

std::vector<TensorType> infer(const InferContext& c) {
  using In = EmbeddingBagInput;
  const Shape &tables = c.shape(In::kTables), &ids = c.shape(In::kIds);
  c.expect_floating(In::kTables, "tables");
  c.expect(tables.rank() == 3, "tables", "(places, vocabulary, width)", tables.text());
  c.expect(tables[0] >= 1, "tables", "1 place or more", tables.text());
  c.expect_dtype(In::kIds, "ids", DType::kI32);
  c.expect(ids.rank() == 2 && ids[1] == tables[0], "ids", fmt::format("(rows, {})", tables[0]),
           ids.text());
  return {{c.dtype(In::kTables), {ids[0], tables[2]}}};
}

}  // namespace

EmbeddingBagSizes embedding_bag_sizes(const Shape& tables, const Shape& ids) {
  return {ids[0], tables[0], tables[1], tables[2]};
}

const OpInfo kEmbeddingBag{.name = "embedding_bag",
                           .inputs = {"tables", {"ids", DType::kI32}},
                           .attrs = EmbeddingBagAttrs{},
                           .infer = infer};

namespace ops {

Value embedding_bag(Graph& g, Value tables, Value ids, std::int64_t first) {
  return g.add(kEmbeddingBag, {tables, ids}, EmbeddingBagAttrs{first});
}

}  // namespace ops
}  // namespace keel
