#include "src/ops/search.h"

#include "src/ops/embedding.h"
#include "src/ops/layout.h"

namespace keel {
namespace {

using Types = std::vector<TensorType>;

Types infer_top_k(const InferContext& c) {
  const Shape& x = c.shape(0);
  c.expect_floating(0, "x");
  c.expect(x.rank() == 2, "x", "(rows, width)", x.text());
  const std::int64_t k = c.attrs.as<TopKAttrs>().k;
  c.expect(k >= 1 && k <= x[1], "k", fmt::format("1 to the width {}", x[1]), fmt::format("{}", k));
  return {{c.dtype(0), {x[0], k}}, {DType::kI32, {x[0], k}}};
}

Types infer_put(const InferContext& c) {
  using In = ScatterInput;
  const Shape& memory = c.shape(In::kMemory);
  c.expect_floating(In::kMemory, "memory");
  c.expect(memory.rank() == 3, "memory", "(rows, length, width)", memory.text());
  c.expect_dtype(In::kX, "x", c.dtype(In::kMemory));
  c.expect_shape(In::kX, "x", {memory[0], 1, memory[2]});
  c.expect_dtype(In::kT, "t", DType::kI32);
  c.expect_shape(In::kT, "t", {});
  return {c.input(In::kMemory)};
}

}  // namespace

const OpInfo kTopK{.name = "top_k", .inputs = {"x"}, .attrs = TopKAttrs{}, .infer = infer_top_k};
const OpInfo kScatter{.name = "scatter",
                      .inputs = {"memory", "x", {"t", DType::kI32}},
                      .infer = infer_put,
                      .in_place = {{ScatterInput::kMemory, 0}}};

namespace ops {

Ranked top_k(Graph& g, Value x, std::int64_t k) {
  const Value values = g.add(kTopK, {x}, TopKAttrs{k});
  return {values, values.at(TopKOutput::kIndices)};
}

Value scatter(Graph& g, Value memory, Value x, Value t) { return g.add(kScatter, {memory, x, t}); }

Value take_rows(Graph& g, Value x, Value rows) {
  const Shape from = g.shape(x);
  const Value table = reshape(g, x, {from[0], from.elements(1, from.rank())});
  std::vector<std::int64_t> sizes(from.sizes().begin(), from.sizes().end());
  sizes[0] = g.shape(rows)[0];
  return reshape(g, embedding(g, table, rows), Shape(sizes));
}

}  // namespace ops
}  // namespace keel
