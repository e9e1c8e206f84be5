// The backward of multi-linear attention. T of a set of queries is computed again, for `dout`; G is
// computed next to it, for all other gradients.
#include "backends/onednn/kernels/kernels.h"
#include "backends/onednn/multilinear_plan.h"
#include "backends/onednn/threads.h"
#include "src/ops/multilinear_attention.h"

#ifndef KEEL_BACKENDS_ONEDNN_KERNELS_MULTILINEAR_BACKWARD_ONCE_
#define KEEL_BACKENDS_ONEDNN_KERNELS_MULTILINEAR_BACKWARD_ONCE_

namespace keel::onednn {

struct MultilinearGradients {
  MultilinearWork w;
  float *da, *dc, *dk, *dp, *dv, *dout;
  float* g;            // like w.tiles
  float* dy_rows;      // (largest set, d), dy of a set
  float* dy_panels;    // the same in panels
  float* dout_shells;  // (pairs, d), in the order of the shells
  float* dp_parts;     // (b, positions, rank), dp of each sequence

  MultilinearGradients(const MultilinearPlan& plan, const Binding& b) : w(plan, b) {
    using Out = MultilinearGradient;
    const auto of = [&](int place) { return b.outputs[std::size_t(place)].as<float>(); };
    da = of(Out::kDa), dc = of(Out::kDc), dk = of(Out::kDk), dp = of(Out::kDp);
    dv = of(Out::kDv), dout = of(Out::kDout);
  }
  explicit MultilinearGradients(const MultilinearPlan& plan) : w(plan) {}

  WorkspaceParts place_parts(void* workspace) {
    const MultilinearPlan& plan = w.plan;
    const std::size_t rows = plan.largest_set(), d = plan.features;
    WorkspaceParts parts(workspace);
    w.vt = parts.floats(plan.batch * plan.sequence());
    w.tiles = parts.floats(rows * plan.tile_row());
    w.scratch = parts.floats(plan.tasks() * plan.scratch());
    w.packed = parts.floats(panel_floats(d, plan.pairs()));
    g = parts.floats(rows * plan.tile_row());
    dy_rows = parts.floats(rows * d);
    dy_panels = parts.floats(panel_floats(rows, d));
    dout_shells = parts.floats(plan.pairs() * d);
    dp_parts = parts.floats(plan.batch * plan.sequence());
    return parts;
  }
};

// Pairs of the shells whose part of dout, or of G, one task computes.
inline constexpr std::size_t kTaskPairs = 2 * kWidestPanel;

}  // namespace keel::onednn

#endif  // KEEL_BACKENDS_ONEDNN_KERNELS_MULTILINEAR_BACKWARD_ONCE_

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/onednn/kernels/multilinear_attention_backward.cpp"
#include <hwy/foreach_target.h>

#include "backends/onednn/simd/multilinear-inl.h"

HWY_BEFORE_NAMESPACE();
namespace keel::onednn {
namespace HWY_NAMESPACE {
namespace {

// Packs the transposed `out`, whose columns are the pairs of the shells.
void pack_pairs(const MultilinearGradients& of, std::size_t task) {
  const MultilinearWork& w = of.w;
  const std::size_t d = w.plan.features, pairs = w.plan.pairs(), first = task * kTaskPairs;
  for (std::size_t s = first; s < std::min(first + kTaskPairs, pairs); s += kPanel) {
    pack_columns(s / kPanel, d, pairs, w.packed,
                 [&](std::size_t pair) { return w.out + (*w.plan.pair_rows)[pair] * d; });
  }
}

void pack_dy(const MultilinearGradients& of, const QuerySet& set) {
  const std::size_t d = of.w.plan.features;
  for (std::size_t r = 0; r < set.count; ++r) {
    std::copy_n(of.w.dy + (set.first + r * set.step) * d, d, of.dy_rows + r * d);
  }
  for (std::size_t panel = 0; panel < panels_of(d); ++panel) {
    pack_rows(panel, set.count, d, of.dy_panels, [&](std::size_t r) { return of.dy_rows + r * d; });
  }
}

void tiles_again(const MultilinearGradients& of, const QuerySet& set, std::size_t task) {
  fill_tiles(of.w, set, task);
}

// For a task's pairs: dout += T^T dy, and G = dy out^T.
void products_with_dy(const MultilinearGradients& of, const QuerySet& set, std::size_t task) {
  const MultilinearWork& w = of.w;
  const std::size_t d = w.plan.features, row = w.plan.tile_row(), first = task * kTaskPairs;
  const std::size_t count = std::min(kTaskPairs, set.seen * set.seen - first);
  multiply_panels({count,
                   set.count,
                   0,
                   d,
                   {w.tiles + first, 1, row},
                   of.dy_panels,
                   set.count,
                   {of.dout_shells + first * d, d},
                   true});
  multiply_panels(
      {set.count, d, first, count, {of.dy_rows, d, 1}, w.packed, d, {of.g, row}, false});
}

// From M (seen, rank) of a query: da and dc of the query, and its part of dk and dp.
HWY_INLINE void gradients_from_m(const MultilinearGradients& of, const MultilinearQuery& q,
                                 const float* m) {
  const std::size_t rank = of.w.plan.rank, all = of.w.plan.sequence();
  const std::size_t row = q.sequence * of.w.plan.positions + q.i;
  float *dk = of.dk + q.sequence * all, *dp = of.dp_parts + q.sequence * all;
  for_lanes(rank, [&](auto part, std::size_t r) HWY_ATTR {
    const Floats a = part.load(q.a + r), c = part.load(q.c + r);
    Floats da = zero(), dc = zero();
    for (std::size_t at = r; at < r + q.seen * rank; at += rank) {
      const Floats v = part.load(m + at);
      da = hn::MulAdd(v, part.load(q.k + at), da);
      dc = hn::MulAdd(v, part.load(of.w.p + at), dc);
      part.store(hn::MulAdd(a, v, part.load(dk + at)), dk + at);
      part.store(hn::MulAdd(c, v, part.load(dp + at)), dp + at);
    }
    part.store(da, of.da + row * rank + r);
    part.store(dc, of.dc + row * rank + r);
  });
}

// All gradients but dout, for a task's queries.
void gradients_of_queries(const MultilinearGradients& of, const QuerySet& set, std::size_t task) {
  static constexpr float kUnscaled = 1;
  const MultilinearWork& w = of.w;
  const std::size_t n = w.plan.positions, rank = w.plan.rank;
  float* const h = w.scratch + task * w.plan.scratch();
  float *const m = h + n * rank, *const square = m + n * rank;
  const RowFactors unscaled{&kUnscaled, 0};
  const TaskQueries queries(set, task);
  for (std::size_t r = queries.first; r < queries.last; ++r) {
    const MultilinearQuery q(w, set.first + r * set.step);
    from_shells(of.g + r * w.plan.tile_row(), q.seen, n, square);
    meet_keys(w, q, h);
    multiply({q.seen, q.seen, rank, {square, n, 1}, {q.v, rank}, {m, rank}, unscaled, false});
    float* const dv = of.dv + q.sequence * w.plan.sequence();
    multiply({q.seen, q.seen, rank, {square, 1, n}, {h, rank}, {dv, rank}, unscaled, true});
    gradients_from_m(of, q, m);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace keel::onednn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace keel::onednn {

HWY_EXPORT(pack_pairs);
HWY_EXPORT(pack_dy);
HWY_EXPORT(tiles_again);
HWY_EXPORT(products_with_dy);
HWY_EXPORT(gradients_of_queries);

namespace {

template <class Task>
void run_tasks(std::size_t count, const Task& task) {
  if (count > 0) {
    parallel_blocks(std::int64_t(count), [&](std::int64_t i) { task(std::size_t(i)); });
  }
}

std::size_t pair_tasks(std::size_t pairs) { return (pairs + kTaskPairs - 1) / kTaskPairs; }

void run_set(const MultilinearGradients& of, const QuerySet& set) {
  HWY_DYNAMIC_DISPATCH(pack_dy)(of, set);
  run_tasks(of.w.plan.tasks(), [&](std::size_t task) {
    HWY_DYNAMIC_DISPATCH(tiles_again)(of, set, task);
  });
  run_tasks(pair_tasks(set.seen * set.seen), [&](std::size_t task) {
    HWY_DYNAMIC_DISPATCH(products_with_dy)(of, set, task);
  });
  run_tasks(of.w.plan.tasks(), [&](std::size_t task) {
    HWY_DYNAMIC_DISPATCH(gradients_of_queries)(of, set, task);
  });
}

// dp is the sum over sequences, in their order; dout leaves the order of the shells.
void finish(const MultilinearGradients& of) {
  const MultilinearPlan& plan = of.w.plan;
  const std::size_t all = plan.sequence(), d = plan.features;
  std::fill_n(of.dp, all, 0.0f);
  for (std::size_t sequence = 0; sequence < plan.batch; ++sequence) {
    for (std::size_t e = 0; e < all; ++e) of.dp[e] += of.dp_parts[sequence * all + e];
  }
  run_tasks(pair_tasks(plan.pairs()), [&](std::size_t task) {
    const std::size_t last = std::min((task + 1) * kTaskPairs, plan.pairs());
    for (std::size_t s = task * kTaskPairs; s < last; ++s) {
      std::copy_n(of.dout_shells + s * d, d, of.dout + (*plan.pair_rows)[s] * d);
    }
  });
}

void backward(const Binding& b, const MultilinearPlan& plan) {
  MultilinearGradients of(plan, b);
  of.place_parts(b.workspace);
  const std::size_t sequences = plan.batch * plan.sequence();
  for (float* sums : {of.dk, of.dv, of.dp_parts}) std::fill_n(sums, sequences, 0.0f);
  std::fill_n(of.dout_shells, plan.pairs() * plan.features, 0.0f);
  if (plan.batch > 0) {
    transpose_sequences(of.w);
    run_tasks(pair_tasks(plan.pairs()), [&](std::size_t task) {
      HWY_DYNAMIC_DISPATCH(pack_pairs)(of, task);
    });
  }
  for (std::size_t s = 0; s < plan.sets(); ++s) run_set(of, plan.set(s));
  finish(of);
}

}  // namespace

Prepared prepare_multilinear_attention_backward(const NodeContext& context) {
  const MultilinearPlan plan(context);
  const std::int64_t bytes = MultilinearGradients(plan).place_parts(nullptr).bytes();
  return kernel_of([plan](const Binding& b) { backward(b, plan); }, bytes);
}

}  // namespace keel::onednn
#endif
