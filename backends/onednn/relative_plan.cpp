#include "backends/onednn/relative_plan.h"

#include "backends/onednn/kernels/transpose_tile.h"

namespace keel::onednn {

void fill_panels(const RelativePlan& plan, const TensorRef& p, void* workspace) {
  const AttentionPlan& of = plan.attention;
  parallel_blocks(std::int64_t(of.heads), [&](std::int64_t head) {
    const DistancePanels panels(plan, workspace, std::size_t(head));
    const float* const keys = p.as<float>() + std::size_t(head) * of.width;
    for (std::size_t c = 0; c < plan.columns(); ++c) {
      const std::int64_t distance = plan.top() - std::int64_t(c);
      float* const row = panels.rows + c * of.width;
      if (distance < 0) {
        std::fill_n(row, of.width, 0.0f);
      } else {
        const auto r = std::size_t(std::min(distance, plan.sizes.distances - 1));
        std::copy_n(keys + r * of.features(), of.width, row);
      }
    }
    transpose_tile({panels.rows, panels.across, std::int64_t(of.width),
                    std::int64_t(plan.columns()), std::int64_t(plan.columns()),
                    std::int64_t(of.width)});
  });
}

}  // namespace keel::onednn
