// A tile of the logits of linear_cross_entropy, compiled once per instruction set.
#if defined(KEEL_BACKENDS_ONEDNN_SIMD_LINEAR_LOSS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KEEL_BACKENDS_ONEDNN_SIMD_LINEAR_LOSS_INL_H_
#undef KEEL_BACKENDS_ONEDNN_SIMD_LINEAR_LOSS_INL_H_
#else
#define KEEL_BACKENDS_ONEDNN_SIMD_LINEAR_LOSS_INL_H_
#endif

#include "backends/onednn/linear_loss_plan.h"
#include "backends/onednn/simd/panel_product-inl.h"

HWY_BEFORE_NAMESPACE();
namespace keel::onednn {
namespace HWY_NAMESPACE {

// Packs kWidestPanel classes of the tile, transposed.
HWY_INLINE void pack_classes(const LinearLossWork& w, std::size_t task) {
  const std::size_t first = task * kWidestPanel, width = w.plan.width;
  const std::size_t last = std::min(first + kWidestPanel, w.tile.count);
  for (std::size_t c = first; c < last; c += kPanel) {
    pack_columns(c / kPanel, width, w.tile.count, w.columns,
                 [&](std::size_t of) { return w.tile.rows + of * width; });
  }
}

// The rows of one task.
struct RowSpan {
  std::size_t first, count;

  RowSpan(const LinearLossWork& w, std::size_t block)
      : first(block * kRowBlock), count(std::min(kRowBlock, w.rows - first)) {}
};

// z = x T^T + b for a task's rows and the tile.
HWY_INLINE void fill_logits(const LinearLossWork& w, const RowSpan& span) {
  const std::size_t width = w.plan.width;
  float* const z = w.z + span.first * kTileRow;
  multiply_panels({span.count,
                   width,
                   0,
                   w.tile.count,
                   {w.x + span.first * width, width, 1},
                   w.columns,
                   width,
                   {z, kTileRow},
                   false});
  if (w.tile.bias == nullptr) return;
  for (std::size_t r = 0; r < span.count; ++r) {
    for_lanes(w.tile.count, [&](auto part, std::size_t c) HWY_ATTR {
      float* const at = z + r * kTileRow + c;
      part.store(hn::Add(part.load(at), part.load(w.tile.bias + c)), at);
    });
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace keel::onednn
HWY_AFTER_NAMESPACE();

#endif  // toggled guard
