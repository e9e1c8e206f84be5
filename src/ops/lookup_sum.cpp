#include "src/ops/lookup_sum.h"

namespace keel {
namespace {

std::vector<TensorType> infer(const InferContext& c) {
  using In = LookupSumInput;
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

LookupSumSizes lookup_sum_sizes(const Shape& tables, const Shape& ids) {
  return {ids[0], tables[0], tables[1], tables[2]};
}

const OpInfo kLookupSum{.name = "lookup_sum",
                        .inputs = {"tables", {"ids", DType::kI32}},
                        .attrs = LookupSumAttrs{},
                        .infer = infer};

namespace ops {

Value lookup_sum(Graph& g, Value tables, Value ids, std::int64_t first) {
  return g.add(kLookupSum, {tables, ids}, LookupSumAttrs{first});
}

}  // namespace ops
}  // namespace keel
