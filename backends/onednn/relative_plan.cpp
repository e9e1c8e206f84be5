#include "backends/onednn/relative_plan.h"

#include "backends/onednn/kernels/transpose_tile.h"

namespace keel::onednn {
namespace {

// across = the transposed rows.
void turn(const RelativePlan& plan, const DistancePanels<float>& panels) {
  const auto width = std::int64_t(plan.attention.width), columns = std::int64_t(plan.columns());
  transpose_tile({panels.rows, panels.across, width, columns, columns, width});
}

void turn(const RelativePlan& plan, const DistancePanels<BF16>& panels) {
  const std::size_t width = plan.attention.width, columns = plan.columns();
  if (width % 2 == 0) {
    const auto pairs = std::int64_t(width / 2);
    transpose_tile({reinterpret_cast<const Pair*>(panels.rows), panels.across, pairs,
                    std::int64_t(columns), std::int64_t(columns), pairs});
    return;
  }
  for (std::size_t c = 0; c < columns; ++c) {
    const BF16* const row = panels.rows + c * width;
    for (std::size_t k = 0; k < pairs_of(width); ++k) {
      const Pair high = 2 * k + 1 < width ? row[2 * k + 1].bits() : 0;
      panels.across[k * columns + c] = row[2 * k].bits() | high << 16;
    }
  }
}

}  // namespace

template <class T>
void fill_panels(const RelativePlan& plan, const TensorRef& p, void* workspace) {
  const AttentionPlan& of = plan.attention;
  parallel_blocks(std::int64_t(of.heads), [&](std::int64_t head) {
    const DistancePanels<T> panels(plan, workspace, std::size_t(head));
    const T* const keys = p.as<T>() + std::size_t(head) * of.width;
    for (std::size_t c = 0; c < plan.columns(); ++c) {
      const std::int64_t distance = plan.top() - std::int64_t(c);
      T* const row = panels.rows + c * of.width;
      if (distance < 0) {
        std::fill_n(row, of.width, T(0.0f));
      } else {
        const auto r = std::size_t(std::min(distance, plan.sizes.distances - 1));
        std::copy_n(keys + r * of.features(), of.width, row);
      }
    }
    turn(plan, panels);
  });
}

template void fill_panels<float>(const RelativePlan&, const TensorRef&, void*);
template void fill_panels<BF16>(const RelativePlan&, const TensorRef&, void*);

}  // namespace keel::onednn
