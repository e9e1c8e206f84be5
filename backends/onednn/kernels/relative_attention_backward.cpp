// The backward of relative attention; each tile of probabilities is recomputed. Rows of the batch
// are cut into blocks only by their number, and each block has sums of its own for the gradient of
// p, which all rows share. Beside factors of bf16, tiles and dy are rounded to bf16 before they are
// multiplied, and sums are multiplied by the scale in the end.
#include "backends/onednn/kernels/kernels.h"
#include "backends/onednn/relative_plan.h"
#include "src/ops/relative_attention.h"

#ifndef KEEL_BACKENDS_ONEDNN_KERNELS_RELATIVE_ATTENTION_BACKWARD_ONCE_
#define KEEL_BACKENDS_ONEDNN_KERNELS_RELATIVE_ATTENTION_BACKWARD_ONCE_

namespace keel::onednn {

// One head's slices of the tensors.
template <class T>
struct RelativeGradientSlices {
  const T *q, *qp, *k, *v;  // q: qk
  const float *y, *lse, *dy;
  float *dqk, *dqp, *dk, *dv;
  DistancePanels<T> panels;
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

// The factors, beside the tensors, of products with the probabilities of a tile's queries.
template <class T>
struct QueryFactors {
  QueryFactors(const RelativeHead&, const QueryTile&, const RelativeGradientSlices<T>&) {}
};
template <>
struct QueryFactors<BF16> : QueryPairs {
  RowPairs<kQueryTile> qp;

  QueryFactors(const RelativeHead& h, const QueryTile& queries,
               const RelativeGradientSlices<BF16>& of)
      : QueryPairs(h.head, queries, of.q, of.dy) {
    const std::size_t d = h.head.plan.features();
    qp.fill(queries.count, h.head.plan.width, Rows<const BF16>{of.qp + queries.first * d, d});
  }
};

void add_key_gradients(const TilePlace& place, const QueryFactors<BF16>& by, const ScoreTile* tiles,
                       const RelativeGradientSlices<BF16>& of) {
  add_gradients(place, by, tiles, of.k, HeadGradients{of.dqk, of.dk, of.dv});
}

// Adds what a tile gives to dv, dk and dqk; it is the first to give anything to dqk for the first
// key that a query of the tile sees.
void add_key_gradients(const TilePlace& place, const QueryFactors<float>&, const ScoreTile* tiles,
                       const RelativeGradientSlices<float>& of) {
  const float *const p = tiles[0].at, *const ds = tiles[1].at;
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

// Gradients of products by distance: (queries, kTileDistances), 0 where there is none.
void turn_gradients(const TilePlace& place, const float* ds, DistanceTile& by_distance) {
  std::fill(std::begin(by_distance.at), std::end(by_distance.at), 0.0f);
  transpose_tile({ds, by_distance.at + kShiftedStart, std::int64_t(kQueryTile),
                  std::int64_t(kShiftedStride), std::int64_t(place.keys.count),
                  std::int64_t(place.queries.count)});
}

// These rounded to bf16, and transposed: (kTileDistances, kQueryTile).
struct NarrowDistances {
  HWY_ALIGN BF16 by_query[kQueryTile * kTileDistances];
  HWY_ALIGN BF16 by_distance[kTileDistances * kQueryTile];

  explicit NarrowDistances(const DistanceTile& tile) {
    HWY_ALIGN Pair pairs[kQueryTile / 2 * kTileDistances];
    round_row(tile.at, by_query, kQueryTile * kTileDistances);
    for (std::size_t i = 0; i < kQueryTile; i += 2) {
      const float* const row = tile.at + i * kTileDistances;
      join_rows(row, row + kTileDistances, kTileDistances, pairs + i / 2 * kTileDistances);
    }
    transpose_tile({pairs, reinterpret_cast<Pair*>(by_distance), std::int64_t(kTileDistances),
                    std::int64_t(kQueryTile / 2), std::int64_t(kQueryTile / 2),
                    std::int64_t(kTileDistances)});
  }
};

// The same for dqp and dp.
void add_distance_gradients(const TilePlace& place, const RelativePlan& plan,
                            const QueryFactors<BF16>& by, const float* ds,
                            const RelativeGradientSlices<BF16>& of) {
  const std::size_t d = plan.attention.features(), w = plan.attention.width;
  const std::size_t distances = place.keys.count + kShiftedStart;
  const std::size_t first = plan.column_of(place.queries, place.keys) * w;
  DistanceTile gradients;
  turn_gradients(place, ds, gradients);
  const NarrowDistances factors(gradients);
  RowPairs<kTileDistances> p;
  p.fill(distances, w, Rows<const BF16>{of.panels.rows + first, w});
  plan.attention.multiply_narrow({place.queries.count, whole_terms(distances), w, factors.by_query,
                                  kTileDistances, p.at, w, of.dqp + place.queries.first * d, d,
                                  place.keys.first > place.queries.from_key});
  plan.attention.multiply_narrow({distances, kQueryTile, w, factors.by_distance, kQueryTile,
                                  by.qp.at, w, of.dp + first, w, true});
}

void add_distance_gradients(const TilePlace& place, const RelativePlan& plan,
                            const QueryFactors<float>&, const float* ds,
                            const RelativeGradientSlices<float>& of) {
  const std::size_t d = plan.attention.features(), width = plan.attention.width;
  const std::size_t queries = place.queries.count, i = place.queries.first * d;
  const std::size_t distances = place.keys.count + kShiftedStart;
  const std::size_t first = plan.column_of(place.queries, place.keys) * width;
  const bool adds_to_dqp = place.keys.first > place.queries.from_key;
  DistanceTile by_distance;
  turn_gradients(place, ds, by_distance);
  const RowFactors scale{&plan.attention.scale, 0};
  multiply({queries,
            distances,
            width,
            {by_distance.at, kTileDistances, 1},
            {of.panels.rows + first, width},
            {of.dqp + i, d},
            scale,
            adds_to_dqp});
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

// Multiplies sums of products of bf16 by the scale: dqk and dqp of a tile of queries, and dk after
// the last one. Those of float32 have it.
void scale_queries(const AttentionPlan& plan, const QueryTile& queries,
                   const RelativeGradientSlices<BF16>& of) {
  const std::size_t d = plan.features(), first = queries.first * d;
  scale_tile({of.dqk + first, d}, queries.count, plan.width, plan.scale);
  scale_tile({of.dqp + first, d}, queries.count, plan.width, plan.scale);
}
void scale_keys(const AttentionPlan& plan, const RelativeGradientSlices<BF16>& of) {
  scale_tile({of.dk, plan.features()}, plan.keys, plan.width, plan.scale);
}
void scale_queries(const AttentionPlan&, const QueryTile&, const RelativeGradientSlices<float>&) {}
void scale_keys(const AttentionPlan&, const RelativeGradientSlices<float>&) {}

template <class T>
void differentiate_head(const RelativeHead& h, const RelativeGradientSlices<T>& of) {
  clear_rows(h.head, of.dk);
  clear_rows(h.head, of.dv);
  ScoreTile tiles[2];  // probabilities, and their gradients
  for (std::size_t i = 0; i < h.head.plan.queries; i += kQueryTile) {
    const QueryTile queries = h.tile(i);
    const QueryState<T> state(h.head, queries, of);
    const QueryFactors<T> factors(h, queries, of);
    for (std::size_t j = queries.from_key; j < queries.keys; j += kKeyTile) {
      const TilePlace place{h.head, queries, KeyTile(queries, j)};
      score<T>(place, h, state.q, {of.qp, of.k, of.panels}, tiles[0].at);
      multiply_keys(place, of.v, state.dy, &kOne, tiles[1].at);
      differentiate(place, state, tiles[0].at, tiles[1].at);
      hide_far(place, h, 0, tiles[1].at);
      add_key_gradients(place, factors, tiles, of);
      add_distance_gradients(place, h.plan, factors, tiles[1].at, of);
    }
    scale_queries(h.head.plan, queries, of);
  }
  scale_keys(h.head.plan, of);
}

void attend_relative_backward(const RelativeHead& h, const RelativeGradientSlices<float>& of) {
  differentiate_head(h, of);
}
void attend_relative_backward_narrow(const RelativeHead& h,
                                     const RelativeGradientSlices<BF16>& of) {
  differentiate_head(h, of);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace keel::onednn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace keel::onednn {
namespace {

HWY_EXPORT(attend_relative_backward);
HWY_EXPORT(attend_relative_backward_narrow);

void run_head(const RelativeHead& h, const RelativeGradientSlices<float>& of) {
  HWY_DYNAMIC_DISPATCH(attend_relative_backward)(h, of);
}
void run_head(const RelativeHead& h, const RelativeGradientSlices<BF16>& of) {
  HWY_DYNAMIC_DISPATCH(attend_relative_backward_narrow)(h, of);
}

using In = RelativeAttentionInput;
using Out = RelativeAttentionGradient;

constexpr std::size_t kMostBlocks = 8;

// The plan, and where the sums for dp of each block of rows and each head lie in the workspace.
struct BackwardPlan {
  RelativePlan of;
  std::size_t panels;        // bytes of the panels of distances
  std::size_t rows, blocks;  // of the batch in a block, and blocks

  explicit BackwardPlan(const RelativePlan& plan)
      : of(plan),
        panels(plan.is_narrow() ? DistancePanels<BF16>::bytes(plan)
                                : DistancePanels<float>::bytes(plan)),
        rows(std::max<std::size_t>(1, (plan.attention.batch + kMostBlocks - 1) / kMostBlocks)),
        blocks((plan.attention.batch + rows - 1) / rows) {}

  std::size_t bytes() const {
    return panels + blocks * of.attention.heads * of.panel() * sizeof(float);
  }
  float* sums(const Binding& b, std::size_t block, std::size_t head) const {
    return reinterpret_cast<float*>(static_cast<std::byte*>(b.workspace) + panels) +
           (block * of.attention.heads + head) * of.panel();
  }
};

template <class T>
void differentiate_row(const BackwardPlan& plan, const Binding& b, std::size_t number, float* dp) {
  const RelativeHead h(plan.of, b, number);
  run_head(h, RelativeGradientSlices<T>{
                  h.head.of_queries<T>(b.inputs[In::kQk]), h.head.of_queries<T>(b.inputs[In::kQp]),
                  h.head.of_keys<T>(b.inputs[In::kK]), h.head.of_keys<T>(b.inputs[In::kV]),
                  h.head.of_queries(b.inputs[In::kY]), h.head.lse(b.inputs[In::kLse]),
                  h.head.of_queries(b.inputs[In::kDy]), h.head.of_queries(b.outputs[Out::kDqk]),
                  h.head.of_queries(b.outputs[Out::kDqp]), h.head.of_keys(b.outputs[Out::kDk]),
                  h.head.of_keys(b.outputs[Out::kDv]),
                  DistancePanels<T>(plan.of, b.workspace, h.head.head), dp});
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
    dp[c] = float(plan.of.is_narrow() ? sum * double(of.scale) : sum);
  }
}

template <class T>
Prepared prepare(const BackwardPlan& plan) {
  const auto run = [plan](const Binding& b) {
    const AttentionPlan& of = plan.of.attention;
    fill_panels<T>(plan.of, b.inputs[In::kP], b.workspace);
    if (plan.blocks > 0) {
      parallel_blocks(std::int64_t(plan.blocks * of.heads), [&](std::int64_t task) {
        const std::size_t block = std::size_t(task) / of.heads, head = std::size_t(task) % of.heads;
        float* const dp = plan.sums(b, block, head);
        std::fill_n(dp, plan.of.panel(), 0.0f);
        const std::size_t end = std::min((block + 1) * plan.rows, of.batch);
        for (std::size_t row = block * plan.rows; row < end; ++row) {
          differentiate_row<T>(plan, b, row * of.heads + head, dp);
        }
      });
    }
    parallel_blocks(plan.of.sizes.distances, [&](std::int64_t r) { add_blocks(plan, b, r); });
  };
  return kernel_of(run, std::int64_t(plan.bytes()));
}

}  // namespace

Prepared prepare_relative_attention_backward(const NodeContext& context) {
  const BackwardPlan plan(relative_plan(context));
  if (!has_narrow_factors(context)) return prepare<float>(plan);
  return plan.of.is_narrow() ? prepare<BF16>(plan) : refuse_bf16_product(context);
}

}  // namespace keel::onednn
#endif
