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

template <class T>
const T* row_of(const LinearLossWork& w, const void* rows, std::size_t number) {
  return static_cast<const T*>(rows) + number * w.plan.width;
}

// Packs kWidestPanel classes of the tile, transposed.
template <class T>
void pack_classes(const LinearLossWork& w, std::size_t task) {
  const std::size_t first = task * kWidestPanel, width = w.plan.width;
  const std::size_t last = std::min(first + kWidestPanel, w.tile.count);
  for (std::size_t c = first; c < last; c += kPanelOf<T>) {
    pack_columns(c / kPanelOf<T>, width, w.tile.count, static_cast<Packed<T>*>(w.columns),
                 [&](std::size_t of) { return row_of<T>(w, w.tile.rows, of); });
  }
}

// The rows of one task.
struct RowSpan {
  std::size_t first, count;

  RowSpan(const LinearLossWork& w, std::size_t block)
      : first(block * w.plan.row_block()), count(std::min(w.plan.row_block(), w.rows - first)) {}
};

// z = x T^T + b for a task's rows and the tile.
template <class T>
void fill_logits(const LinearLossWork& w, const RowSpan& span) {
  const std::size_t width = w.plan.width;
  float* const z = w.z + span.first * kTileRow;
  multiply_panels(PanelProduct<T>{span.count,
                                  width,
                                  0,
                                  w.tile.count,
                                  {row_of<T>(w, w.x, span.first), width, 1},
                                  static_cast<const Packed<T>*>(w.columns),
                                  width,
                                  {z, kTileRow},
                                  false},
                  w.plan.multiply_narrow);
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
