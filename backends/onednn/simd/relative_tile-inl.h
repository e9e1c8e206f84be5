// Tiles of the scores of relative attention, compiled once per instruction set. For their layout
// see relative_plan.h.
#if defined(KEEL_BACKENDS_ONEDNN_SIMD_RELATIVE_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KEEL_BACKENDS_ONEDNN_SIMD_RELATIVE_TILE_INL_H_
#undef KEEL_BACKENDS_ONEDNN_SIMD_RELATIVE_TILE_INL_H_
#else
#define KEEL_BACKENDS_ONEDNN_SIMD_RELATIVE_TILE_INL_H_
#endif

#include "backends/onednn/relative_plan.h"
#include "backends/onednn/simd/attention_softmax-inl.h"

HWY_BEFORE_NAMESPACE();
namespace keel::onednn {
namespace HWY_NAMESPACE {

// Products of the queries of a tile with its distances: (kQueryTile, kTileDistances).
struct DistanceTile {
  HWY_ALIGN float at[kQueryTile * kTileDistances];
};

// tile = the products qp_i . p_r of keys and queries, times the scale; 0 for absent queries.
inline void multiply_distances(const TilePlace& place, const RelativePlan& plan, const float* qp,
                               const DistancePanels& panels, float* tile) {
  const QueryTile& queries = place.queries;
  const KeyTile& keys = place.keys;
  const std::size_t d = plan.attention.features(), n = keys.count + kShiftedStart;
  DistanceTile products;
  std::fill(products.at + queries.count * kTileDistances, products.at + kQueryTile * kTileDistances,
            0.0f);
  multiply({queries.count,
            plan.attention.width,
            n,
            {qp + queries.first * d, d, 1},
            {panels.across + plan.column_of(queries, keys), plan.columns()},
            {products.at, kTileDistances},
            {&plan.attention.scale, 0},
            false});
  transpose_tile({products.at + kShiftedStart, tile, std::int64_t(kShiftedStride),
                  std::int64_t(kQueryTile), std::int64_t(kQueryTile), std::int64_t(keys.count)});
}

// Writes `value` wherever a key is too far from a query, or not in the memory.
inline void hide_far(const TilePlace& place, const RelativeHead& h, float value, float* tile) {
  for (std::size_t i = 0; i < place.queries.count; ++i) {
    const std::int64_t hidden =
        h.first_key(place.queries.first + i) - std::int64_t(place.keys.first);
    for (std::int64_t j = 0; j < std::min(hidden, std::int64_t(place.keys.count)); ++j) {
      tile[std::size_t(j) * kQueryTile + i] = value;
    }
  }
}

// One head's slices of q and k, and the keys of its distances.
struct RelativeOperands {
  const float *qp, *k;
  DistancePanels panels;
};

// tile = the scores of keys and queries; -infinity for a key that a query does not see. qk is
// transposed.
inline void score(const TilePlace& place, const RelativeHead& h, const Transposed& qk,
                  const RelativeOperands& of, float* tile) {
  const AttentionPlan& plan = h.plan.attention;
  const std::size_t d = plan.features();
  multiply_distances(place, h.plan, of.qp, of.panels, tile);
  multiply({place.keys.count,
            plan.width,
            columns_of(place.queries),
            {of.k + place.keys.first * d, d, 1},
            {qk.at, kQueryTile},
            {tile, kQueryTile},
            {&plan.scale, 0},
            true});
  hide(place, kMinusInfinity, tile);
  hide_far(place, h, kMinusInfinity, tile);
}

}  // namespace HWY_NAMESPACE
}  // namespace keel::onednn
HWY_AFTER_NAMESPACE();

#endif  // toggled guard
