// Multi-linear attention. T of a set of queries is computed and multiplied by those rows of `out`
// that it meets; then the next set takes its place.
#include "src/ops/multilinear_attention.h"

#include "backends/onednn/kernels/empty_sum.h"
#include "backends/onednn/kernels/kernels.h"
#include "backends/onednn/kernels/transpose_tile.h"
#include "backends/onednn/multilinear_plan.h"
#include "backends/onednn/threads.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/onednn/kernels/multilinear_attention.cpp"
#include <hwy/foreach_target.h>

#include "backends/onednn/simd/multilinear-inl.h"

HWY_BEFORE_NAMESPACE();
namespace keel::onednn {
namespace HWY_NAMESPACE {
namespace {

// How many columns of y or `out` a task has that begins at `first`: kWidestPanel, fewer at the end.
std::size_t columns_from(const MultilinearWork& w, std::size_t first) {
  return std::min(kWidestPanel, w.plan.features - first);
}

void pack_out(const MultilinearWork& w, std::size_t task) {
  const std::size_t d = w.plan.features, first = task * kWidestPanel;
  for (std::size_t j = first; j < first + columns_from(w, first); j += kPanel) {
    pack_rows(j / kPanel, w.plan.pairs(), d, w.packed,
              [&](std::size_t pair) { return w.out + (*w.plan.pair_rows)[pair] * d; });
  }
}

void tiles_of_queries(const MultilinearWork& w, const QuerySet& set, std::size_t task) {
  fill_tiles(w, set, task);
}

void multiply_tiles(const MultilinearWork& w, const QuerySet& set, float* y, std::size_t task) {
  const std::size_t d = w.plan.features, first = task * kWidestPanel;
  multiply_panels({set.count,
                   set.seen * set.seen,
                   first,
                   columns_from(w, first),
                   {w.tiles, w.plan.tile_row(), 1},
                   w.packed,
                   w.plan.pairs(),
                   {y + set.first * d, set.step * d},
                   false});
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace keel::onednn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace keel::onednn {

HWY_EXPORT(pack_out);
HWY_EXPORT(tiles_of_queries);
HWY_EXPORT(multiply_tiles);

namespace {

WorkspaceParts place_parts(MultilinearWork& w, void* workspace) {
  const MultilinearPlan& plan = w.plan;
  WorkspaceParts parts(workspace);
  w.vt = parts.floats(plan.batch * plan.sequence());
  w.tiles = parts.floats(plan.largest_set() * plan.tile_row());
  w.scratch = parts.floats(plan.tasks() * plan.scratch());
  w.packed = parts.floats(panel_floats(plan.pairs(), plan.features));
  return parts;
}

void forward(const Binding& b, const MultilinearPlan& plan) {
  MultilinearWork w(plan, b);
  place_parts(w, b.workspace);
  float* const y = b.outputs[0].as<float>();
  const std::size_t strips = (plan.features + kWidestPanel - 1) / kWidestPanel;
  transpose_sequences(w);
  parallel_blocks(std::int64_t(strips), [&](std::int64_t task) {
    HWY_DYNAMIC_DISPATCH(pack_out)(w, std::size_t(task));
  });
  for (std::size_t s = 0; s < plan.sets(); ++s) {
    const QuerySet set = plan.set(s);
    parallel_blocks(std::int64_t(plan.tasks()), [&](std::int64_t task) {
      HWY_DYNAMIC_DISPATCH(tiles_of_queries)(w, set, std::size_t(task));
    });
    parallel_blocks(std::int64_t(strips), [&](std::int64_t task) {
      HWY_DYNAMIC_DISPATCH(multiply_tiles)(w, set, y, std::size_t(task));
    });
  }
}

}  // namespace

void transpose_sequences(const MultilinearWork& w) {
  const auto n = std::int64_t(w.plan.positions), rank = std::int64_t(w.plan.rank);
  parallel_range(std::int64_t(w.plan.batch), 8, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      transpose_tile({w.v + i * n * rank, w.vt + i * n * rank, rank, n, n, rank});
    }
  });
}

Prepared prepare_multilinear_attention(const NodeContext& context) {
  const MultilinearPlan plan(context);
  if (plan.batch == 0) return do_nothing();
  MultilinearWork counted(plan);
  const std::int64_t bytes = place_parts(counted, nullptr).bytes();
  return kernel_of([plan](const Binding& b) { forward(b, plan); }, bytes);
}

}  // namespace keel::onednn
#endif
