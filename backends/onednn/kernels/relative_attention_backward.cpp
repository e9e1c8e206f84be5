// The backward of relative attention; each tile of probabilities is recomputed. Rows of the batch
// are cut into blocks by their number alone, and each block has sums of its own for the gradient of
// p, which all rows share.
#include "backends/onednn/kernels/kernels.h"
#include "backends/onednn/relative_plan.h"
#include "src/ops/relative_attention.h"

#ifndef KEEL_BACKENDS_ONEDNN_KERNELS_RELATIVE_ATTENTION_BACKWARD_ONCE_
#define KEEL_BACKENDS_ONEDNN_KERNELS_RELATIVE_ATTENTION_BACKWARD_ONCE_

namespace keel::onednn {

// One head's slices of the tensors.
struct RelativeGradientSlices {
  const float *q, *qp, *k, *v, *y, *lse, *dy;  // q: qk
  float *dqk, *dqp, *dk, *dv;
  DistancePanels panels;
  float* dp;  // the block's sums, in the order of panels.rows
};

}  // namespace keel::onednn

#endif  // KEEL_BACKENDS_ONEDNN_KERNELS_RELATIVE_ATTENTION_BACKWARD_ONCE_

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/onednn/kernels/relative_attention_backward.cpp"
#include <hwy/foreach_target.h>

#include "backends/onednn/simd/relative_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace keel::onednn {
namespace HWY_NAMESPACE {
namespace {

// Adds what a tile gives to dv, dk and dqk; it is the first to give anything to dqk for the first
// key that a query of the tile sees.
void add_key_gradients(const TilePlace& place, const float* p, const float* ds,
                       const RelativeGradientSlices& of) {
  const AttentionPlan& plan = place.head.plan;
  const std::size_t d = plan.features(), queries = place.queries.count, keys = place.keys.count;
  const std::size_t i = place.queries.first * d, j = place.keys.first * d;
  const RowFactors scale{&plan.scale, 0}, one{&kOne, 0};
  const Strided by_key{p, kQueryTile, 1}, ds_by_key{ds, kQueryTile, 1},
      ds_by_query{ds, 1, kQueryTile};
  multiply({keys, queries, plan.width, by_key, {of.dy + i, d}, {of.dv + j, d}, one, true});
  multiply({keys, queries, plan.width, ds_by_key, {of.q + i, d}, {of.dk + j, d}, scale, true});
  const bool adds = place.keys.first > place.queries.from_key;
  multiply({queries, keys, plan.width, ds_by_query, {of.k + j, d}, {of.dqk + i, d}, scale, adds});
}

// The same for dqp and dp.
void add_distance_gradients(const TilePlace& place, const RelativePlan& plan, const float* ds,
                            const RelativeGradientSlices& of) {
  const std::size_t d = plan.attention.features(), width = plan.attention.width;
  const std::size_t queries = place.queries.count, i = place.queries.first * d;
  const std::size_t distances = place.keys.count + kShiftedStart;
  const std::size_t first = plan.column_of(place.queries, place.keys) * width;
  DistanceTile by_distance;
  std::fill(std::begin(by_distance.at), std::end(by_distance.at), 0.0f);
  transpose_tile({ds, by_distance.at + kShiftedStart, std::int64_t(kQueryTile),
                  std::int64_t(kShiftedStride), std::int64_t(place.keys.count),
                  std::int64_t(queries)});
  const RowFactors scale{&plan.attention.scale, 0};
  multiply({queries,
            distances,
            width,
            {by_distance.at, kTileDistances, 1},
            {of.panels.rows + first, width},
            {of.dqp + i, d},
            scale,
            place.keys.first > place.queries.from_key});
  multiply({distances,
            queries,
            width,
            {by_distance.at, 1, kTileDistances},
            {of.qp + i, d},
            {of.dp + first, width},
            scale,
            true});
}

void clear_rows(const AttentionHead& h, float* x) {
  for (std::size_t j = 0; j < h.plan.keys; ++j) {
    std::fill_n(x + j * h.plan.features(), h.plan.width, 0.0f);
  }
}

void attend_relative_backward(const RelativeHead& h, const RelativeGradientSlices& of) {
  clear_rows(h.head, of.dk);
  clear_rows(h.head, of.dv);
  ScoreTile scores, products;
  for (std::size_t i = 0; i < h.head.plan.queries; i += kQueryTile) {
    const QueryTile queries = h.tile(i);
    const QueryState state(h.head, queries, of);
    for (std::size_t j = queries.from_key; j < queries.keys; j += kKeyTile) {
      const TilePlace place{h.head, queries, KeyTile(queries, j)};
      score(place, h, state.q, {of.qp, of.k, of.panels}, scores.at);
      multiply_keys(place, of.v, state.dy, &kOne, products.at);
      differentiate(place, state, scores.at, products.at);
      hide_far(place, h, 0, products.at);
      add_key_gradients(place, scores.at, products.at, of);
      add_distance_gradients(place, h.plan, products.at, of);
    }
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace keel::onednn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace keel::onednn {
namespace {

HWY_EXPORT(attend_relative_backward);

using In = RelativeAttentionInput;
using Out = RelativeAttentionGradient;

constexpr std::size_t kMostBlocks = 8;

// The plan, and where the sums for dp of each block of rows and each head lie in the workspace.
struct BackwardPlan {
  RelativePlan of;
  std::size_t rows, blocks;  // of the batch in a block, and blocks

  explicit BackwardPlan(const RelativePlan& plan)
      : of(plan),
        rows(std::max<std::size_t>(1, (plan.attention.batch + kMostBlocks - 1) / kMostBlocks)),
        blocks((plan.attention.batch + rows - 1) / rows) {}

  std::size_t floats() const {
    return DistancePanels::floats(of) + blocks * of.attention.heads * of.panel();
  }
  float* sums(const Binding& b, std::size_t block, std::size_t head) const {
    return static_cast<float*>(b.workspace) + DistancePanels::floats(of) +
           (block * of.attention.heads + head) * of.panel();
  }
};

void differentiate_row(const BackwardPlan& plan, const Binding& b, std::size_t number, float* dp) {
  const RelativeHead h(plan.of, b, number);
  const RelativeGradientSlices of{h.head.of_queries(b.inputs[In::kQk]),
                                  h.head.of_queries(b.inputs[In::kQp]),
                                  h.head.of_keys(b.inputs[In::kK]),
                                  h.head.of_keys(b.inputs[In::kV]),
                                  h.head.of_queries(b.inputs[In::kY]),
                                  h.head.lse(b.inputs[In::kLse]),
                                  h.head.of_queries(b.inputs[In::kDy]),
                                  h.head.of_queries(b.outputs[Out::kDqk]),
                                  h.head.of_queries(b.outputs[Out::kDqp]),
                                  h.head.of_keys(b.outputs[Out::kDk]),
                                  h.head.of_keys(b.outputs[Out::kDv]),
                                  DistancePanels(plan.of, b.workspace, h.head.head),
                                  dp};
  HWY_DYNAMIC_DISPATCH(attend_relative_backward)(h, of);
}

// Adds up what the blocks have for the distances of row r of dp, of which the last row has many.
void add_blocks(const BackwardPlan& plan, const Binding& b, std::int64_t r) {
  const AttentionPlan& of = plan.of.attention;
  const RelativeSizes& sizes = plan.of.sizes;
  const std::int64_t last = r == sizes.distances - 1 ? sizes.keys - 1 : r;
  float* const dp = b.outputs[Out::kDp].as<float>() + std::size_t(r) * of.features();
  for (std::size_t c = 0; c < of.features(); ++c) {
    double sum = 0;
    for (std::int64_t distance = r; distance <= last; ++distance) {
      const std::size_t at = std::size_t(plan.of.top() - distance) * of.width + c % of.width;
      for (std::size_t block = 0; block < plan.blocks; ++block) {
        sum += double(plan.sums(b, block, c / of.width)[at]);
      }
    }
    dp[c] = float(sum);
  }
}

}  // namespace

Prepared prepare_relative_attention_backward(const NodeContext& context) {
  const BackwardPlan plan(relative_plan(context));
  const auto run = [plan](const Binding& b) {
    const AttentionPlan& of = plan.of.attention;
    fill_panels(plan.of, b.inputs[In::kP], b.workspace);
    if (plan.blocks > 0) {
      parallel_blocks(std::int64_t(plan.blocks * of.heads), [&](std::int64_t task) {
        const std::size_t block = std::size_t(task) / of.heads, head = std::size_t(task) % of.heads;
        float* const dp = plan.sums(b, block, head);
        std::fill_n(dp, plan.of.panel(), 0.0f);
        const std::size_t end = std::min((block + 1) * plan.rows, of.batch);
        for (std::size_t row = block * plan.rows; row < end; ++row) {
          differentiate_row(plan, b, row * of.heads + head, dp);
        }
      });
    }
    parallel_blocks(plan.of.sizes.distances, [&](std::int64_t r) { add_blocks(plan, b, r); });
  };
  return kernel_of(run, std::int64_t(plan.floats() * sizeof(float)));
}

}  // namespace keel::onednn
#endif
