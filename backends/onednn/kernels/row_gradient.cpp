// The gradient of a table as rows: the sorted ids, and the sum of the gradients for each id.
#include "src/ops/row_gradient.h"

#include <algorithm>

#include "backends/onednn/blocks.h"
#include "backends/onednn/kernels/elementwise_steps.h"
#include "backends/onednn/kernels/kernels.h"

namespace keel::onednn {
namespace {

// An id above and its place below: sorted as one number, equal ids stay in their order.
using PlacedId = std::uint64_t;
constexpr int kPlaceBits = 32;

void group_ids(const Binding& b, const GroupIdsAttrs& attrs) {
  using Out = GroupIdsOutput;
  const std::int32_t* ids = b.inputs[0].as<std::int32_t>();
  const std::int64_t n = b.inputs[0].elements();
  std::int32_t* order = b.outputs[Out::kOrder].as<std::int32_t>();
  std::int32_t* unique = b.outputs[Out::kUnique].as<std::int32_t>();
  std::int32_t* begins = b.outputs[Out::kBegins].as<std::int32_t>();
  auto* sorted = static_cast<PlacedId*>(b.workspace);
  for (std::int64_t i = 0; i < n; ++i) {
    sorted[i] = PlacedId(attrs.key(ids[i])) << kPlaceBits | PlacedId(i);
  }
  std::sort(sorted, sorted + n);
  std::int64_t groups = 0, taken = 0;
  for (std::int64_t k = 0; k < n; ++k) {
    const auto id = std::int32_t(sorted[k] >> kPlaceBits);
    order[k] = std::int32_t(sorted[k]);
    if (id == attrs.vocabulary) continue;
    ++taken;
    if (groups > 0 && unique[groups - 1] == id) continue;
    unique[groups] = id;
    begins[groups++] = std::int32_t(k);
  }
  std::fill(unique + groups, unique + n, std::int32_t(attrs.vocabulary));
  std::fill(begins + groups, begins + n + 1, std::int32_t(taken));
}

// A block has some groups and some columns, so that one large group is several blocks' work.
void sum_groups(const Binding& b) {
  using In = SumGroupsInput;
  constexpr std::int64_t kColumns = 256, kGroups = 64;
  const float* dy = b.inputs[In::kDy].as<float>();
  const std::int32_t* order = b.inputs[In::kOrder].as<std::int32_t>();
  const std::int32_t* begins = b.inputs[In::kBegins].as<std::int32_t>();
  float* rows = b.outputs[0].as<float>();
  const std::int64_t n = b.outputs[0].type.shape[0], width = b.outputs[0].type.shape[1];
  const std::int64_t strips = (width + kColumns - 1) / kColumns;
  parallel_blocks((n + kGroups - 1) / kGroups * strips, [&](std::int64_t block) {
    const std::int64_t first = block / strips * kGroups, column = block % strips * kColumns;
    const auto columns = std::size_t(std::min(kColumns, width - column));
    for (std::int64_t g = first; g < std::min(first + kGroups, n); ++g) {
      float* sum = rows + g * width + column;
      std::fill_n(sum, columns, 0.0f);
      for (std::int32_t k = begins[g]; k < begins[g + 1]; ++k) {
        const float* part = dy + order[k] * width + column;
        run_step(EwCode::kAdd, {{{sum}, {part}, {}}, sum, columns});
      }
    }
  });
}

}  // namespace

Prepared prepare_group_ids(const NodeContext& context) {
  const std::int64_t n = context.input(0).shape.elements();
  return kernel_of(
      [attrs = context.attrs<GroupIdsAttrs>()](const Binding& b) { group_ids(b, attrs); },
      n * std::int64_t(sizeof(PlacedId)));
}

Prepared prepare_sum_groups(const NodeContext&) { return kernel_of(sum_groups); }

}  // namespace keel::onednn
