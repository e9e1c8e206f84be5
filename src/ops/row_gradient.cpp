#include "src/ops/row_gradient.h"

namespace keel {
namespace {

using Types = std::vector<TensorType>;

constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max() - 1;

Types infer_group_ids(const InferContext& c) {
  c.expect_dtype(0, "ids", DType::kI32);
  const std::int64_t n = c.shape(0).elements();
  const std::int64_t vocabulary = c.attrs.as<GroupIdsAttrs>().vocabulary;
  c.expect(n <= kMost, "ids", fmt::format("at most {}", kMost), fmt::format("{}", n));
  c.expect(vocabulary >= 0 && vocabulary <= kMost, "vocabulary", fmt::format("0 to {}", kMost),
           fmt::format("{}", vocabulary));
  const TensorType list{DType::kI32, {n}};
  return {list, list, {DType::kI32, {n + 1}}};
}

Types infer_sum_groups(const InferContext& c) {
  using In = SumGroupsInput;
  const Shape& dy = c.shape(In::kDy);
  c.expect_floating(In::kDy, "dy");
  c.expect(dy.rank() >= 1, "dy", "(..., width)", dy.text());
  c.expect_dtype(In::kOrder, "order", DType::kI32);
  c.expect_dtype(In::kBegins, "begins", DType::kI32);
  const std::int64_t n = dy.elements(0, dy.rank() - 1);
  c.expect_shape(In::kOrder, "order", {n});
  c.expect_shape(In::kBegins, "begins", {n + 1});
  return {{c.dtype(In::kDy), {n, dy.back()}}};
}

}  // namespace

const OpInfo kGroupIds{.name = "group_ids",
                       .inputs = {{"ids", DType::kI32}},
                       .attrs = GroupIdsAttrs{},
                       .infer = infer_group_ids};
const OpInfo kSumGroups{.name = "sum_groups",
                        .inputs = {"dy", {"order", DType::kI32}, {"begins", DType::kI32}},
                        .infer = infer_sum_groups};

namespace ops {

ParameterGradient row_gradient(Graph& g, Value ids, Value dy, const GroupIdsAttrs& attrs) {
  using Out = GroupIdsOutput;
  const Value groups = g.add(kGroupIds, {ids}, attrs);
  const Value rows = g.add(kSumGroups, {dy, groups.at(Out::kOrder), groups.at(Out::kBegins)});
  return {rows, groups.at(Out::kUnique)};
}

}  // namespace ops
}  // namespace keel
