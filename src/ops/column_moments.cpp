#include "src/ops/column_moments.h"

#include "src/ops/norm/columns.h"

namespace keel {
namespace {

using In = ColumnMomentsInput;
using Types = std::vector<TensorType>;

TensorType statistics(std::int64_t rows, std::int64_t channels) {
  return {DType::kF64, {rows, channels}};
}

Types infer_moments(const InferContext& c) {
  return {statistics(MomentRow::kRows, expect_columns(c, In::kMask).channels)};
}

Types infer_squares(const InferContext& c) {
  const std::int64_t rows = square_rows(c.attrs.as<ColumnSquaresAttrs>().all_rows);
  return {statistics(rows, expect_columns(c, In::kMask).channels)};
}

Types infer_merge(const InferContext& c) {
  const Shape& parts = c.shape(0);
  c.expect_dtype(0, "parts", DType::kF64);
  c.expect(parts.rank() == 3, "parts", "(shards, kinds, channels)", parts.text());
  c.expect(parts[0] >= 1, "parts", "at least one shard", parts.text());
  return {statistics(parts[1], parts[2])};
}

Types infer_merge_moments(const InferContext& c) {
  const Types merged = infer_merge(c);
  const Shape& parts = c.shape(0);
  c.expect(parts[1] == MomentRow::kRows, "parts", "(shards, 4, channels)", parts.text());
  return merged;
}

}  // namespace

const OpInfo kColumnMoments{.name = "column_moments",
                            .inputs = {"x", {"mask", DType::kU8}},
                            .outputs = DType::kF64,
                            .infer = infer_moments};
const OpInfo kColumnSquares{.name = "column_squares",
                            .inputs = {"x", {"mask", DType::kU8}},
                            .outputs = DType::kF64,
                            .attrs = ColumnSquaresAttrs{},
                            .infer = infer_squares};
const OpInfo kMergeMoments{.name = "merge_moments",
                           .inputs = {{"parts", DType::kF64}},
                           .outputs = DType::kF64,
                           .infer = infer_merge_moments};
const OpInfo kMergeSums{.name = "merge_sums",
                        .inputs = {{"parts", DType::kF64}},
                        .outputs = DType::kF64,
                        .infer = infer_merge};

namespace ops {

Value column_moments(Graph& g, Value x, Value mask) { return g.add(kColumnMoments, {x, mask}); }
Value column_squares(Graph& g, Value x, Value mask, const ColumnSquaresAttrs& attrs) {
  return g.add(kColumnSquares, {x, mask}, attrs);
}
Value merge_moments(Graph& g, Value parts) { return g.add(kMergeMoments, {parts}); }
Value merge_sums(Graph& g, Value parts) { return g.add(kMergeSums, {parts}); }

}  // namespace ops
}  // namespace keel
