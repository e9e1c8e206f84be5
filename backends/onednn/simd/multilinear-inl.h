// The tile T of some queries of multi-linear attention, compiled once per instruction set.
#if defined(KEEL_BACKENDS_ONEDNN_SIMD_MULTILINEAR_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KEEL_BACKENDS_ONEDNN_SIMD_MULTILINEAR_INL_H_
#undef KEEL_BACKENDS_ONEDNN_SIMD_MULTILINEAR_INL_H_
#else
#define KEEL_BACKENDS_ONEDNN_SIMD_MULTILINEAR_INL_H_
#endif

#include "backends/onednn/multilinear_plan.h"
#include "backends/onednn/simd/panel_product-inl.h"

HWY_BEFORE_NAMESPACE();
namespace keel::onednn {
namespace HWY_NAMESPACE {

// One query of a set: its place among all, and its slices of the tensors.
struct MultilinearQuery {
  std::size_t sequence, i, seen;
  const float *a, *c, *k, *v, *vt;

  MultilinearQuery(const MultilinearWork& w, std::size_t row) {
    const std::size_t n = w.plan.positions, all = w.plan.sequence();
    sequence = row / n, i = row % n, seen = w.plan.seen(i);
    a = w.a + row * w.plan.rank, c = w.c + row * w.plan.rank;
    k = w.k + sequence * all, v = w.v + sequence * all, vt = w.vt + sequence * all;
  }
};

// h (seen, rank): H_jr = a_r k_jr + c_r p_jr
HWY_INLINE void meet_keys(const MultilinearWork& w, const MultilinearQuery& q, float* h) {
  const std::size_t rank = w.plan.rank;
  for_lanes(rank, [&](auto part, std::size_t r) HWY_ATTR {
    const Floats a = part.load(q.a + r), c = part.load(q.c + r);
    for (std::size_t at = r; at < r + q.seen * rank; at += rank) {
      const Floats meets = hn::Mul(a, part.load(q.k + at));
      part.store(hn::MulAdd(c, part.load(w.p + at), meets), h + at);
    }
  });
}

// Puts square (seen, seen), whose rows are n floats apart, into the order of the shells; zeros fill
// the tile up to `length`.
HWY_INLINE void to_shells(const float* square, std::size_t seen, std::size_t n, std::size_t length,
                          float* tile) {
  for (std::size_t m = 0; m < seen; ++m) {
    for (std::size_t j = 0; j <= m; ++j) *tile++ = square[j * n + m];
    tile = std::copy_n(square + m * n, m, tile);
  }
  std::fill_n(tile, length - seen * seen, 0.0f);
}

HWY_INLINE void from_shells(const float* tile, std::size_t seen, std::size_t n, float* square) {
  for (std::size_t m = 0; m < seen; ++m) {
    for (std::size_t j = 0; j <= m; ++j) square[j * n + m] = *tile++;
    std::copy_n(tile, m, square + m * n);
    tile += m;
  }
}

// The queries of one task of a set.
struct TaskQueries {
  std::size_t first, last;

  TaskQueries(const QuerySet& set, std::size_t task)
      : first(task * MultilinearPlan::kTaskQueries),
        last(std::min(first + MultilinearPlan::kTaskQueries, set.count)) {}
};

// T = H v^T of a task's queries.
HWY_INLINE void fill_tiles(const MultilinearWork& w, const QuerySet& set, std::size_t task) {
  static constexpr float kUnscaled = 1;
  const std::size_t n = w.plan.positions, rank = w.plan.rank;
  float* const h = w.scratch + task * w.plan.scratch();
  float* const square = h + 2 * n * rank;
  const TaskQueries queries(set, task);
  for (std::size_t r = queries.first; r < queries.last; ++r) {
    const MultilinearQuery q(w, set.first + r * set.step);
    meet_keys(w, q, h);
    multiply({q.seen, rank, q.seen, {h, rank, 1}, {q.vt, n}, {square, n}, {&kUnscaled, 0}, false});
    to_shells(square, q.seen, n, set.seen * set.seen, w.tiles + r * w.plan.tile_row());
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace keel::onednn
HWY_AFTER_NAMESPACE();

#endif  // toggled guard
