#include "backends/onednn/row_blocks.h"

namespace keel::onednn {

// 32 KiB each.
RowBlocks independent_row_blocks(const RowSizes& sizes) {
  constexpr std::int64_t kElements = 8 * 1024;
  return row_blocks(sizes, std::max<std::int64_t>(1, kElements / sizes.width));
}

// At least 128 KiB a block, at most 32 blocks and 64 Ki sums, but two blocks for rows of any width.
RowBlocks summed_row_blocks(const RowSizes& sizes, std::int64_t sums) {
  constexpr std::int64_t kElements = 32 * 1024, kBlocks = 32, kSums = 64 * 1024;
  const std::int64_t most = std::clamp<std::int64_t>(kSums / (sums * sizes.width), 2, kBlocks);
  const std::int64_t least_rows = std::max<std::int64_t>(1, kElements / sizes.width);
  return row_blocks(sizes, std::max(least_rows, (sizes.rows + most - 1) / most));
}

RowBlocks gradient_row_blocks(const RowSizes& sizes, std::int64_t sums, bool has_sums) {
  const bool leave_sums = has_sums && !is_wide(sizes);
  return leave_sums ? summed_row_blocks(sizes, sums) : independent_row_blocks(sizes);
}

}  // namespace keel::onednn
