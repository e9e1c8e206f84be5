// The data of the kernels of multi-linear attention, and the order of their work.
//
// Pairs (j, k) are numbered by shells: shell m has the pairs whose larger member is m. If causal,
// query i then meets exactly the first (i + 1)^2 pairs, so the products with `out` have no masked
// term. They cost a third of products over all pairs.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <vector>

#include "backends/onednn/panels.h"
#include "backends/onednn/workspace_parts.h"
#include "src/ops/multilinear_attention.h"
#include "src/runtime/backend.h"

namespace keel::onednn {

// The queries whose T is in memory at the same time. Their rows in y (b n, d) begin at `first` and
// are `step` rows apart.
struct QuerySet {
  std::size_t first, step, count;
  std::size_t seen;  // keys that the last query meets, the most of all
};

struct MultilinearPlan {
  std::size_t batch, positions, rank, features;
  bool causal;

  // For each pair of the shells the row of `out`, which is j n + k.
  std::shared_ptr<const std::vector<std::size_t>> pair_rows;

  explicit MultilinearPlan(const NodeContext& context) {
    using In = MultilinearInput;
    const MultilinearSizes sizes =
        multilinear_sizes(context.input(In::kA).shape, context.input(In::kOut).shape);
    batch = std::size_t(sizes.batch), positions = std::size_t(sizes.positions);
    rank = std::size_t(sizes.rank), features = std::size_t(sizes.features);
    causal = context.attrs<MultilinearAttrs>().causal;
    std::vector<std::size_t> rows;
    for (std::size_t m = 0; m < positions; ++m) {
      for (std::size_t j = 0; j <= m; ++j) rows.push_back(j * positions + m);
      for (std::size_t of = 0; of < m; ++of) rows.push_back(m * positions + of);
    }
    pair_rows = std::make_shared<const std::vector<std::size_t>>(std::move(rows));
  }

  // Many sequences are taken together, one position after the other. Few sequences are taken one
  // after the other, kSomePositions positions at a time.
  static constexpr std::size_t kSomePositions = 8;
  bool is_by_position() const { return batch >= kSomePositions; }
  std::size_t sets() const {
    const std::size_t parts = (positions + kSomePositions - 1) / kSomePositions;
    return batch == 0 ? 0 : is_by_position() ? positions : batch * parts;
  }
  QuerySet set(std::size_t number) const {
    if (is_by_position()) return {number, positions, batch, seen(number)};
    const std::size_t parts = sets() / batch, i = number % parts * kSomePositions;
    const std::size_t count = std::min(kSomePositions, positions - i);
    return {number / parts * positions + i, 1, count, seen(i + count - 1)};
  }
  std::size_t largest_set() const {
    return is_by_position() ? batch : std::min(kSomePositions, positions);
  }

  // One task computes the small products of kTaskQueries queries. A set of one sequence is one
  // task, so that the gradients of its keys are added up in one order.
  static constexpr std::size_t kTaskQueries = 8;
  static_assert(kTaskQueries >= kSomePositions);
  std::size_t tasks() const { return (largest_set() + kTaskQueries - 1) / kTaskQueries; }
  std::size_t scratch() const { return (2 * rank + positions) * positions; }

  std::size_t seen(std::size_t i) const { return causal ? i + 1 : positions; }
  std::size_t pairs() const { return positions * positions; }
  std::size_t tile_row() const { return padded_row(pairs()); }  // distance of rows of T
  std::size_t sequence() const { return positions * rank; }     // floats of q, k or v
};

// The tasks of a kernel share the tensors and parts of the workspace.
struct MultilinearWork {
  MultilinearPlan plan;
  const float *a = nullptr, *c = nullptr, *k = nullptr, *p = nullptr, *v = nullptr;
  const float *out = nullptr, *dy = nullptr;
  float* vt = nullptr;       // (b, rank, positions), v transposed
  float* tiles = nullptr;    // (largest set, tile_row), T of a set's queries
  float* packed = nullptr;   // `out` in the order of the shells, in panels
  float* scratch = nullptr;  // of each task: H (positions, rank), M like it, a square of positions

  explicit MultilinearWork(const MultilinearPlan& of) : plan(of) {}

  MultilinearWork(const MultilinearPlan& of, const Binding& b) : plan(of) {
    using In = MultilinearInput;
    const auto in = [&](int place) { return b.inputs[std::size_t(place)].as<const float>(); };
    a = in(In::kA), c = in(In::kC), k = in(In::kK), p = in(In::kP), v = in(In::kV);
    out = in(In::kOut);
    if (b.inputs.size() > In::kDy) dy = in(In::kDy);
  }
};

// Fills in vt.
void transpose_sequences(const MultilinearWork& work);

}  // namespace keel::onednn
