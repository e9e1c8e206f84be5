// The gradient of a table as rows: the sorted ids, and the sum of the gradients for each id.
#include "src/ops/row_gradient.h"

#include <algorithm>
#include <numeric>

#include "backends/reference/kernels/kernels.h"

namespace keel::reference {
namespace {

void group_ids(const Binding& b, const GroupIdsAttrs& attrs) {
  using Out = GroupIdsOutput;
  const std::int32_t* ids = b.inputs[0].as<std::int32_t>();
  const std::int64_t n = b.inputs[0].elements();
  std::int32_t* order = b.outputs[Out::kOrder].as<std::int32_t>();
  std::int32_t* unique = b.outputs[Out::kUnique].as<std::int32_t>();
  std::int32_t* begins = b.outputs[Out::kBegins].as<std::int32_t>();
  const auto key = [&](std::int32_t i) { return attrs.key(ids[i]); };
  std::iota(order, order + n, 0);
  std::stable_sort(order, order + n, [&](auto i, auto j) { return key(i) < key(j); });
  std::int64_t groups = 0, k = 0;
  for (; k < n && key(order[k]) < attrs.vocabulary; ++k) {
    if (k > 0 && key(order[k]) == key(order[k - 1])) continue;
    unique[groups] = ids[order[k]];
    begins[groups++] = std::int32_t(k);
  }
  std::fill(unique + groups, unique + n, std::int32_t(attrs.vocabulary));
  std::fill(begins + groups, begins + n + 1, std::int32_t(k));
}

// rows[g] = sum over the places i of group g of dy[i].
void sum_groups(const Binding& b) {
  using In = SumGroupsInput;
  const Shape& shape = b.outputs[0].type.shape;
  const Matrix dy = matrix(b.inputs[In::kDy], shape[0], shape[1]);
  const std::int32_t* order = b.inputs[In::kOrder].as<std::int32_t>();
  const std::int32_t* begins = b.inputs[In::kBegins].as<std::int32_t>();
  Matrix rows = matrix(b.outputs[0], shape[0], shape[1]);
  rows.setZero();
  for (Eigen::Index g = 0; g < rows.rows(); ++g) {
    for (std::int32_t k = begins[g]; k < begins[g + 1]; ++k) rows.row(g) += dy.row(order[k]);
  }
}

}  // namespace

Prepared prepare_group_ids(const NodeContext& context) {
  return kernel_of(
      [attrs = context.attrs<GroupIdsAttrs>()](const Binding& b) { group_ids(b, attrs); });
}

Prepared prepare_sum_groups(const NodeContext&) { return kernel_of(sum_groups); }

}  // namespace keel::reference
