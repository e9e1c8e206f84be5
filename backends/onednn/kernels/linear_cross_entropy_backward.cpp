// The backward of linear_cross_entropy. Each tile of logits is computed again and becomes P, their
// gradient; products with it are added to dx, and are what dT has for the tile's classes.
#include <algorithm>
#include <cmath>

#include "backends/onednn/kernels/kernels.h"
#include "backends/onednn/kernels/loss_kernels.h"
#include "backends/onednn/kernels/reduce_kernels.h"
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

void pack_both(const LinearLossWork& w, std::size_t task) {
  if (!w.has_logits) pack_classes(w, task);
  const std::size_t width = w.plan.width, panels = panels_of(width);
  const std::size_t tasks = blocks_of(w.tile.count, kWidestPanel);
  for (std::size_t panel = task; panel < panels; panel += tasks) {
    pack_rows(panel, w.tile.count, width, w.words,
              [&](std::size_t c) { return w.tile.rows + c * width; });
  }
}

void pack_rows_of(const LinearLossWork& w, std::size_t chunk) {
  const std::size_t width = w.plan.width, first = chunk * kChunk;
  float* const to = w.x_panels + chunk * panel_floats(kChunk, width);
  for (std::size_t panel = 0; panel < panels_of(width); ++panel) {
    pack_rows(panel, std::min(kChunk, w.rows - first), width, to,
              [&](std::size_t r) { return w.x + (first + r) * width; });
  }
}

// P of a task's rows, which takes the place of the logits, and dx += P T.
void take_gradients(const LinearLossWork& w, std::size_t block) {
  const RowSpan span(w, block);
  const double s = w.plan.attrs.label_smoothing;
  const float share = float(s / double(w.part->classes())), own = float((1 - s) * w.gradient);
  if (!w.has_logits) fill_logits(w, span);
  for (std::size_t r = span.first; r < span.first + span.count; ++r) {
    float* const p = w.z + r * kTileRow;
    softmax_gradient_row(p, p, std::int64_t(w.tile.count), {w.lse[r], share, w.gradient});
    const std::int64_t place = w.hot[r] - std::int64_t(w.tile.first);
    const bool is_here = w.hot[r] >= 0 && place >= 0 && place < std::int64_t(w.tile.count);
    if (is_here) p[place] -= own;
  }
  const std::size_t width = w.plan.width;
  multiply_panels({span.count,
                   w.tile.count,
                   0,
                   width,
                   {w.z + span.first * kTileRow, kTileRow, 1},
                   w.words,
                   w.tile.count,
                   {w.dx + span.first * width, width},
                   true});
}

// dT = P^T x for a task's classes and columns, or dT += P^T x.
void add_class_gradients(const LinearLossWork& w, std::size_t task) {
  const std::size_t width = w.plan.width, strips = blocks_of(width, kColumnBlock);
  const std::size_t first = task / strips * kClassBlock, column = task % strips * kColumnBlock;
  for (std::size_t row = 0; row < w.rows; row += kChunk) {
    const std::size_t count = std::min(kChunk, w.rows - row);
    multiply_panels({std::min(kClassBlock, w.tile.count - first),
                     count,
                     column,
                     std::min(kColumnBlock, width - column),
                     {w.z + row * kTileRow + first, 1, kTileRow},
                     w.x_panels + row / kChunk * panel_floats(kChunk, width),
                     count,
                     {w.tile.drows + first * width, width},
                     row > 0 || w.adds_rows});
  }
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
  run_tasks(blocks_of(w.rows, kRowBlock), w, differentiate_rows);
  run_tasks(blocks_of(w.tile.count, kClassBlock) * blocks_of(w.plan.width, kColumnBlock), w,
            differentiate_classes);
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
  float *x, *dx, *lse;  // of the rows of a part, one after the other
  double* sums;         // of the columns of a tile
  WorkspaceParts parts;

  BackwardParts(LinearLossWork& w, void* workspace) : parts(workspace) {
    const LinearLossPlan& plan = w.plan;
    rows.rows = parts.take<std::int32_t>(plan.rows);
    rows.hot = parts.take<std::int32_t>(plan.rows);
    x = parts.floats(plan.rows * plan.width), dx = parts.floats(plan.rows * plan.width);
    lse = parts.floats(plan.rows);
    sums = parts.take<double>(kTileClasses);
    w.columns = parts.floats(panel_floats(plan.width, kTileClasses));
    w.words = parts.floats(panel_floats(kTileClasses, plan.width));
    w.x_panels = parts.floats(plan.chunks() * panel_floats(kChunk, plan.width));
    w.z = parts.floats(plan.rows * kTileRow);
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
  w.x = gather_rows(plan, parts.rows, b.inputs[In::kX].as<float>(), parts.x);
  const float* const lse = b.inputs[In::kLse].as<float>() + p * plan.rows;
  for (std::size_t r = 0; r < w.rows; ++r) parts.lse[r] = lse[parts.rows.rows[r]];
  w.lse = parts.lse, w.dx = parts.dx;
  std::fill_n(w.dx, w.rows * plan.width, 0.0f);
  run_tasks(blocks_of(w.rows, kChunk), w, pack_chunk);
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
  LinearLossWork counted(plan);
  return kernel_of([plan](const Binding& b) { backward(b, plan); },
                   BackwardParts(counted, nullptr).parts.bytes());
}

}  // namespace keel::onednn
#endif
