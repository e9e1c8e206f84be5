// Tiles of the scores of relative attention, compiled once per instruction set. For their layout
// see relative_plan.h.
#if defined(KEEL_BACKENDS_ONEDNN_SIMD_RELATIVE_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KEEL_BACKENDS_ONEDNN_SIMD_RELATIVE_TILE_INL_H_
#undef KEEL_BACKENDS_ONEDNN_SIMD_RELATIVE_TILE_INL_H_
#else
#define KEEL_BACKENDS_ONEDNN_SIMD_RELATIVE_TILE_INL_H_
#endif

#include "backends/onednn/relative_plan.h"
#include "backends/onednn/simd/narrow_attention-inl.h"

HWY_BEFORE_NAMESPACE();
namespace keel::onednn {
namespace HWY_NAMESPACE {

// Products of the queries of a tile with its distances: (kQueryTile, kTileDistances).
struct DistanceTile {
  HWY_ALIGN float at[kQueryTile * kTileDistances];
};

// products (queries, distances) = qp_i . p_r, times the scale unless factors are bf16.
inline void multiply_columns(const TilePlace& place, const RelativePlan& plan, const float* qp,
                             const DistancePanels<float>& panels, float* products) {
  const auto& [head, queries, keys] = place;
  const std::size_t d = plan.attention.features();
  multiply({queries.count,
            plan.attention.width,
            keys.count + kShiftedStart,
            {qp + queries.first * d, d, 1},
            {panels.across + plan.column_of(queries, keys), plan.columns()},
            {products, kTileDistances},
            {&plan.attention.scale, 0},
            false});
}
inline void multiply_columns(const TilePlace& place, const RelativePlan& plan, const BF16* qp,
                             const DistancePanels<BF16>& panels, float* products) {
  const auto& [head, queries, keys] = place;
  const std::size_t d = plan.attention.features();
  plan.attention.multiply_narrow({queries.count, plan.attention.width, keys.count + kShiftedStart,
                                  qp + queries.first * d, d,
                                  panels.across + plan.column_of(queries, keys), plan.columns(),
                                  products, kTileDistances, false});
}

// tile = these products by keys and queries; 0 for absent queries.
template <class T>
void multiply_distances(const TilePlace& place, const RelativePlan& plan, const T* qp,
                        const DistancePanels<T>& panels, float* tile) {
  const QueryTile& queries = place.queries;
  const KeyTile& keys = place.keys;
  DistanceTile products;
  std::fill(products.at + queries.count * kTileDistances, products.at + kQueryTile * kTileDistances,
            0.0f);
  multiply_columns(place, plan, qp, panels, products.at);
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
template <class T>
struct RelativeOperands {
  const T *qp, *k;
  DistancePanels<T> panels;
};

// Adds the products qk_i . k_j to a tile that has those by distance; all have the scale then.
inline void add_contents(const TilePlace& place, const TransposedOf<BF16>& qk, const BF16* k,
                         float* tile) {
  const AttentionPlan& plan = place.head.plan;
  const std::size_t d = plan.features(), columns = columns_of(place.queries);
  plan.multiply_narrow({place.keys.count, plan.width, columns, k + place.keys.first * d, d, qk.at,
                        kQueryTile, tile, kQueryTile, true});
  scale_tile({tile, kQueryTile}, place.keys.count, columns, plan.scale);
}
inline void add_contents(const TilePlace& place, const Transposed& qk, const float* k,
                         float* tile) {
  const AttentionPlan& plan = place.head.plan;
  const std::size_t d = plan.features();
  multiply({place.keys.count,
            plan.width,
            columns_of(place.queries),
            {k + place.keys.first * d, d, 1},
            {qk.at, kQueryTile},
            {tile, kQueryTile},
            {&plan.scale, 0},
            true});
}

// tile = the scores of keys and queries; -infinity for a key that a query does not see. qk is
// transposed.
template <class T>
void score(const TilePlace& place, const RelativeHead& h, const TransposedOf<T>& qk,
           const RelativeOperands<T>& of, float* tile) {
  multiply_distances(place, h.plan, of.qp, of.panels, tile);
  add_contents(place, qk, of.k, tile);
  hide(place, kMinusInfinity, tile);
  hide_far(place, h, kMinusInfinity, tile);
}

}  // namespace HWY_NAMESPACE
}  // namespace keel::onednn
HWY_AFTER_NAMESPACE();

#endif  // toggled guard
