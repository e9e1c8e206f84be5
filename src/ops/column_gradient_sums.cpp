#include "src/ops/column_gradient_sums.h"

#include "src/ops/norm/columns.h"

namespace keel {
namespace {

using Types = std::vector<TensorType>;

// Throws unless the inputs at these places fit x; returns the type of `rows` kinds of sums.
TensorType expect_sums(const InferContext& c, const ColumnSizes& sizes, int dy, std::int64_t rows) {
  expect_dy(c, dy);
  return {DType::kF64, {rows, sizes.channels}};
}

Types infer_centred(const InferContext& c) {
  using In = CentredSumsInput;
  const ColumnSizes sizes = expect_columns(c, In::kMask);
  c.expect_shape(In::kMean, "mean", {sizes.channels});
  c.expect_shape(In::kRstd, "rstd", {sizes.channels});
  const std::int64_t rows = centred_sum_rows(c.attrs.as<CentredSumsAttrs>().padding);
  return {expect_sums(c, sizes, In::kDy, rows)};
}

Types infer_uncentred(const InferContext& c) {
  using In = UncentredSumsInput;
  const ColumnSizes sizes = expect_columns(c, In::kMask);
  c.expect_shape(In::kRstd, "rstd", {sizes.channels});
  const std::int64_t rows = uncentred_sum_rows(c.attrs.as<UncentredSumsAttrs>().all_rows);
  return {expect_sums(c, sizes, In::kDy, rows)};
}

}  // namespace

const OpInfo kCentredGradientSums{.name = "centred_gradient_sums",
                                  .inputs = {"x", "mean", "rstd", "dy", {"mask", DType::kU8}},
                                  .outputs = DType::kF64,
                                  .attrs = CentredSumsAttrs{},
                                  .infer = infer_centred};
const OpInfo kUncentredGradientSums{.name = "uncentred_gradient_sums",
                                    .inputs = {"x", "rstd", "dy", {"mask", DType::kU8}},
                                    .outputs = DType::kF64,
                                    .attrs = UncentredSumsAttrs{},
                                    .infer = infer_uncentred};

namespace ops {

Value centred_gradient_sums(Graph& g, const CentredColumns& of, const CentredSumsAttrs& attrs) {
  return g.add(kCentredGradientSums, {of.x, of.mean, of.rstd, of.dy, of.mask}, attrs);
}
Value uncentred_gradient_sums(Graph& g, const UncentredColumns& of,
                              const UncentredSumsAttrs& attrs) {
  return g.add(kUncentredGradientSums, {of.x, of.rstd, of.dy, of.mask}, attrs);
}

}  // namespace ops
}  // namespace keel
