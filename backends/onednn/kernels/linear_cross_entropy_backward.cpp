// The backward of linear_cross_entropy. Each tile of logits is computed again and becomes P, their
// gradient; products with it are added to dx, and are what dT has for the tile's classes. Beside
// factors of bf16, P is rounded to bf16, but not in the gradients of biases.
#include <algorithm>
#include <cmath>

#include "backends/onednn/kernels/bf16.h"
#include "backends/onednn/kernels/kernels.h"
#include "backends/onednn/kernels/loss_kernels.h"
#include "backends/onednn/kernels/reduce_kernels.h"
#include "backends/onednn/kernels/transpose_tile.h"
#include "backends/onednn/linear_loss_plan.h"
#include "src/ops/linear_cross_entropy.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/onednn/kernels/linear_cross_entropy_backward.cpp"
#include <hwy/foreach_target.h>

#include "backends/onednn/simd/linear_loss-inl.h"

HWY_BEFORE_NAMESPACE();
namespace keel::onednn {
namespace HWY_NAMESPACE {
namespace {

template <class T>
void pack_both_of(const LinearLossWork& w, std::size_t task) {
  if (!w.has_logits) pack_classes<T>(w, task);
  const std::size_t width = w.plan.width, panels = panels_of<T>(width);
  const std::size_t tasks = blocks_of(w.tile.count, kWidestPanel);
  for (std::size_t panel = task; panel < panels; panel += tasks) {
    pack_rows(panel, w.tile.count, width, static_cast<Packed<T>*>(w.words),
              [&](std::size_t c) { return row_of<T>(w, w.tile.rows, c); });
  }
}

void pack_both(const LinearLossWork& w, std::size_t task) {
  w.plan.is_narrow() ? pack_both_of<BF16>(w, task) : pack_both_of<float>(w, task);
}

template <class T>
Packed<T>* panels_of_chunk(const LinearLossWork& w, std::size_t chunk) {
  const std::size_t terms = packed_terms<T>(w.plan.chunk());
  return static_cast<Packed<T>*>(w.x_panels) + chunk * panel_floats(terms, w.plan.width);
}

template <class T>
void pack_chunk_of(const LinearLossWork& w, std::size_t chunk) {
  const std::size_t width = w.plan.width, first = chunk * w.plan.chunk();
  for (std::size_t panel = 0; panel < panels_of<T>(width); ++panel) {
    pack_rows(panel, std::min(w.plan.chunk(), w.rows - first), width, panels_of_chunk<T>(w, chunk),
              [&](std::size_t r) { return row_of<T>(w, w.x, first + r); });
  }
}

void pack_rows_of(const LinearLossWork& w, std::size_t chunk) {
  w.plan.is_narrow() ? pack_chunk_of<BF16>(w, chunk) : pack_chunk_of<float>(w, chunk);
}

// P as a factor of dx, from row `row` on, and of dT.
template <class T>
StridedOf<T> p_by_row(const LinearLossWork& w, std::size_t row);
template <>
StridedOf<float> p_by_row(const LinearLossWork& w, std::size_t row) {
  return {w.z + row * kTileRow, kTileRow, 1};
}
template <>
StridedOf<BF16> p_by_row(const LinearLossWork& w, std::size_t row) {
  return {w.p + row * kTileRow, kTileRow, 1};
}
template <class T>
StridedOf<T> p_by_class(const LinearLossWork& w, std::size_t c, std::size_t row);
template <>
StridedOf<float> p_by_class(const LinearLossWork& w, std::size_t c, std::size_t row) {
  return {w.z + row * kTileRow + c, 1, kTileRow};
}
template <>
StridedOf<BF16> p_by_class(const LinearLossWork& w, std::size_t c, std::size_t row) {
  return {w.p_columns + c * w.column_row() + row, w.column_row(), 1};
}

// Rounds P of a task's rows, by row and by class.
void round_gradient(const LinearLossWork& w, const RowSpan& span) {
  constexpr std::size_t kMostPairs = 32;
  HWY_ALIGN Pair pairs[kMostPairs * kTileRow];
  const float* const p = w.z + span.first * kTileRow;
  for (std::size_t r = 0; r < span.count; ++r) {
    round_row(p + r * kTileRow, w.p + (span.first + r) * kTileRow, w.tile.count);
    if (r % 2 == 1) continue;
    const float* const next = r + 1 < span.count ? p + (r + 1) * kTileRow : nullptr;
    join_rows(p + r * kTileRow, next, w.tile.count, pairs + r / 2 * kTileRow);
  }
  transpose_tile({pairs, reinterpret_cast<Pair*>(w.p_columns + span.first), kTileRow,
                  std::int64_t(w.column_row() / 2), std::int64_t(pairs_of(span.count)),
                  std::int64_t(w.tile.count)});
}

// P of a task's rows, which takes the place of the logits, and dx += P T.
template <class T>
void differentiate_rows_of(const LinearLossWork& w, std::size_t block) {
  const RowSpan span(w, block);
  const double s = w.plan.attrs.label_smoothing;
  const float share = float(s / double(w.part->classes())), own = float((1 - s) * w.gradient);
  if (!w.has_logits) fill_logits<T>(w, span);
  for (std::size_t r = span.first; r < span.first + span.count; ++r) {
    float* const p = w.z + r * kTileRow;
    softmax_gradient_row(p, p, std::int64_t(w.tile.count), {w.lse[r], share, w.gradient});
    const std::int64_t place = w.hot[r] - std::int64_t(w.tile.first);
    const bool is_here = w.hot[r] >= 0 && place >= 0 && place < std::int64_t(w.tile.count);
    if (is_here) p[place] -= own;
  }
  if (w.plan.is_narrow()) round_gradient(w, span);
  const std::size_t width = w.plan.width;
  multiply_panels(PanelProduct<T>{span.count,
                                  w.tile.count,
                                  0,
                                  width,
                                  p_by_row<T>(w, span.first),
                                  static_cast<const Packed<T>*>(w.words),
                                  w.tile.count,
                                  {w.dx + span.first * width, width},
                                  true},
                  w.plan.multiply_narrow);
}

void take_gradients(const LinearLossWork& w, std::size_t block) {
  w.plan.is_narrow() ? differentiate_rows_of<BF16>(w, block)
                     : differentiate_rows_of<float>(w, block);
}

// dT = P^T x for a task's classes and columns, or dT += P^T x.
template <class T>
void differentiate_classes_of(const LinearLossWork& w, std::size_t task) {
  const std::size_t width = w.plan.width, strips = blocks_of(width, kColumnBlock);
  const std::size_t block = w.plan.class_block(), chunk = w.plan.chunk();
  const std::size_t first = task / strips * block, column = task % strips * kColumnBlock;
  for (std::size_t row = 0; row < w.rows; row += chunk) {
    const std::size_t count = std::min(chunk, w.rows - row);
    multiply_panels(PanelProduct<T>{std::min(block, w.tile.count - first),
                                    count,
                                    column,
                                    std::min(kColumnBlock, width - column),
                                    p_by_class<T>(w, first, row),
                                    panels_of_chunk<T>(w, row / chunk),
                                    count,
                                    {w.tile.drows + first * width, width},
                                    row > 0 || w.adds_rows},
                    w.plan.multiply_narrow);
  }
}

void add_class_gradients(const LinearLossWork& w, std::size_t task) {
  w.plan.is_narrow() ? differentiate_classes_of<BF16>(w, task)
                     : differentiate_classes_of<float>(w, task);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace keel::onednn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace keel::onednn {

HWY_EXPORT(pack_both);
HWY_EXPORT(pack_rows_of);
HWY_EXPORT(take_gradients);
HWY_EXPORT(add_class_gradients);

void pack_gradient(const LinearLossWork& w, std::size_t task) {
  HWY_DYNAMIC_DISPATCH(pack_both)(w, task);
}
void pack_chunk(const LinearLossWork& w, std::size_t chunk) {
  HWY_DYNAMIC_DISPATCH(pack_rows_of)(w, chunk);
}
void differentiate_rows(const LinearLossWork& w, std::size_t block) {
  HWY_DYNAMIC_DISPATCH(take_gradients)(w, block);
}
void differentiate_classes(const LinearLossWork& w, std::size_t task) {
  HWY_DYNAMIC_DISPATCH(add_class_gradients)(w, task);
}
void differentiate_tile(const LinearLossWork& w) {
  run_tasks(blocks_of(w.tile.count, kWidestPanel), w, pack_gradient);
  run_tasks(blocks_of(w.rows, w.plan.row_block()), w, differentiate_rows);
  run_tasks(blocks_of(w.tile.count, w.plan.class_block()) * blocks_of(w.plan.width, kColumnBlock),
            w, differentiate_classes);
}

void place_gradients(LinearLossWork& w, std::span<const TensorRef> gradients) {
  using Out = LinearLossGradient;
  const std::size_t words = std::size_t(w.part->words());
  const bool is_words = w.tile.first < words;
  const std::size_t at =
      is_words ? std::size_t(w.part->first) + w.tile.first : w.tile.first - words;
  const TensorRef& rows = gradients[is_words ? Out::kDtable : Out::kDclusters];
  const TensorRef& bias = gradients[is_words ? Out::kDbias : Out::kDclusterBias];
  w.tile.drows = rows.as<float>() + at * w.plan.width;
  w.tile.dbias = bias ? bias.as<float>() + at : nullptr;
}

void scatter_rows(const LinearLossWork& w, const std::int32_t* rows, const float* of_part,
                  float* dx) {
  for (std::size_t r = 0; r < w.rows; ++r) {
    float* const to = dx + std::size_t(rows[r]) * w.plan.width;
    for (std::size_t c = 0; c < w.plan.width; ++c) to[c] += of_part[r * w.plan.width + c];
  }
}

namespace {

using In = LinearLossInput;
using Out = LinearLossGradient;

struct BackwardParts {
  PartRows rows;
  std::byte* x;     // of the rows of a part, one after the other
  float *dx, *lse;  // of the same
  double* sums;     // of the columns of a tile
  WorkspaceParts parts;

  BackwardParts(LinearLossWork& w, void* workspace) : parts(workspace) {
    const LinearLossPlan& plan = w.plan;
    rows.rows = parts.take<std::int32_t>(plan.rows);
    rows.hot = parts.take<std::int32_t>(plan.rows);
    x = parts.take<std::byte>(plan.rows * plan.row_bytes());
    dx = parts.floats(plan.rows * plan.width);
    lse = parts.floats(plan.rows);
    sums = parts.take<double>(kTileClasses);
    w.columns = parts.floats(panel_floats(plan.terms(plan.width), kTileClasses));
    w.words = parts.floats(panel_floats(plan.terms(kTileClasses), plan.width));
    w.x_panels = parts.floats(plan.chunks() * panel_floats(plan.terms(plan.chunk()), plan.width));
    w.z = parts.floats(plan.rows * kTileRow);
    if (!plan.is_narrow()) return;
    w.p = parts.take<BF16>(plan.rows * kTileRow);
    w.p_columns = parts.take<BF16>(kTileClasses * w.column_row());
  }
};

void run_tile(const LinearLossWork& w, double* sums) {
  differentiate_tile(w);
  if (w.tile.dbias == nullptr) return;
  reduce_columns(Reduction::kSum,
                 {w.z, std::int64_t(w.rows), std::int64_t(w.tile.count), std::int64_t(kTileRow)},
                 sums);
  std::copy_n(sums, w.tile.count, w.tile.dbias);
}

// Takes the rows of a part together, with their lse; their dx begins at 0.
void begin_part(LinearLossWork& w, BackwardParts& parts, const Binding& b, std::size_t p) {
  const LinearLossPlan& plan = w.plan;
  parts.rows.list(plan, *w.part, b.inputs[In::kLabels].as<std::int32_t>());
  w.rows = parts.rows.count, w.hot = parts.rows.hot;
  w.x = gather_rows(plan, parts.rows, b.inputs[In::kX].data, parts.x);
  const float* const lse = b.inputs[In::kLse].as<float>() + p * plan.rows;
  for (std::size_t r = 0; r < w.rows; ++r) parts.lse[r] = lse[parts.rows.rows[r]];
  w.lse = parts.lse, w.dx = parts.dx;
  std::fill_n(w.dx, w.rows * plan.width, 0.0f);
  run_tasks(blocks_of(w.rows, plan.chunk()), w, pack_chunk);
}

void backward(const Binding& b, const LinearLossPlan& plan) {
  LinearLossWork w(plan);
  BackwardParts parts(w, b.workspace);
  for (const TensorRef& output : b.outputs) {
    if (output) std::fill_n(output.as<float>(), output.elements(), 0.0f);
  }
  w.gradient = *b.inputs[In::kDsum].as<float>();
  for (std::size_t p = 0; p < plan.parts.size(); ++p) {
    w.part = &plan.parts[p];
    begin_part(w, parts, b, p);
    if (w.rows == 0) continue;
    each_tile(w, b, [&] {
      place_gradients(w, b.outputs);
      run_tile(w, parts.sums);
    });
    scatter_rows(w, parts.rows.rows, w.dx, b.outputs[Out::kDx].as<float>());
  }
}

}  // namespace

Prepared prepare_linear_cross_entropy_backward(const NodeContext& context) {
  const LinearLossPlan plan(context);
  if (plan.is_refused()) return refuse_bf16_product(context);
  LinearLossWork counted(plan);
  return kernel_of([plan](const Binding& b) { backward(b, plan); },
                   BackwardParts(counted, nullptr).parts.bytes());
}

}  // namespace keel::onednn
#endif
