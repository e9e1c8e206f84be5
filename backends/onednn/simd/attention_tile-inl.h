// Tiles of the scores and probabilities of one head, compiled once per instruction set. For their
// layout see attention_plan.h.
#if defined(KEEL_BACKENDS_ONEDNN_SIMD_ATTENTION_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KEEL_BACKENDS_ONEDNN_SIMD_ATTENTION_TILE_INL_H_
#undef KEEL_BACKENDS_ONEDNN_SIMD_ATTENTION_TILE_INL_H_
#else
#define KEEL_BACKENDS_ONEDNN_SIMD_ATTENTION_TILE_INL_H_
#endif

#include "backends/onednn/attention_plan.h"
#include "backends/onednn/kernels/transpose_tile.h"
#include "backends/onednn/simd/bf16-inl.h"
#include "backends/onednn/simd/philox-inl.h"
#include "backends/onednn/simd/small_product-inl.h"

HWY_BEFORE_NAMESPACE();
namespace keel::onednn {
namespace HWY_NAMESPACE {

inline constexpr float kOne = 1;
inline constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

// The number of columns of a tile that are computed: whole registers.
HWY_INLINE std::size_t columns_of(const QueryTile& queries) {
  return (queries.count + kLanes - 1) / kLanes * kLanes;
}

// A head's features for a tile of queries, transposed: (width, kQueryTile), of bf16 (pairs of
// features, kQueryTile); 0 after the last query.
template <class T>
struct TransposedOf;
using Transposed = TransposedOf<float>;

template <>
struct TransposedOf<float> {
  HWY_ALIGN float at[kWidestHead * kQueryTile];

  void fill(const AttentionHead& h, const QueryTile& queries, const float* x) {
    const std::size_t d = h.plan.features(), columns = columns_of(queries);
    transpose_tile({x + queries.first * d, at, std::int64_t(d), std::int64_t(kQueryTile),
                    std::int64_t(queries.count), std::int64_t(h.plan.width)});
    if (columns == queries.count) return;
    for (std::size_t c = 0; c < h.plan.width; ++c) {
      std::fill(at + c * kQueryTile + queries.count, at + c * kQueryTile + columns, 0.0f);
    }
  }
};

template <>
struct TransposedOf<BF16> {
  HWY_ALIGN Pair at[kWidestHead / 2 * kQueryTile];

  void fill(const AttentionHead& h, const QueryTile& queries, const BF16* x) {
    fill(h.plan.width, queries, {x + queries.first * h.plan.features(), h.plan.features()});
  }
  // Fills the tile from float32, which is rounded to bf16.
  void fill(const AttentionHead& h, const QueryTile& queries, const float* x) {
    HWY_ALIGN BF16 rows[kQueryTile * kWidestHead];
    const std::size_t d = h.plan.features();
    for (std::size_t i = 0; i < queries.count; ++i) {
      round_row(x + (queries.first + i) * d, rows + i * kWidestHead, h.plan.width);
    }
    fill(h.plan.width, queries, {rows, kWidestHead});
  }
  void fill(std::size_t width, const QueryTile& queries, const Rows<const BF16>& x) {
    for (std::size_t k = 0; k < pairs_of(width); ++k) {
      std::fill(at + k * kQueryTile + queries.count, at + (k + 1) * kQueryTile, Pair{0});
    }
    for (std::size_t i = 0; i < queries.count; i += 4) {
      const BF16* rows[4];
      const std::size_t some = std::min<std::size_t>(4, queries.count - i);
      for (std::size_t n = 0; n < some; ++n) rows[n] = x.at + (i + n) * x.row;
      turn_pairs(rows, some, width, {at + i, kQueryTile});
    }
  }
};

struct ScoreTile {
  HWY_ALIGN float at[kKeyTile * kQueryTile];
};

HWY_INLINE void scale_tile(const Rows<float>& x, std::size_t rows, std::size_t columns,
                           float factor) {
  for (std::size_t i = 0; i < rows; ++i) {
    for_lanes(columns, [&](auto part, std::size_t c) HWY_ATTR {
      float* const at = x.at + i * x.row + c;
      part.store(hn::Mul(part.load(at), splat(factor)), at);
    });
  }
}

// The tile of one head that is being computed.
struct TilePlace {
  const AttentionHead& head;
  QueryTile queries;
  KeyTile keys;
};

// tile = factor x_j y_i for keys j of x, a slice of a tensor, and queries i of y.
HWY_INLINE void multiply_keys(const TilePlace& place, const float* x, const Transposed& y,
                              const float* factor, float* tile) {
  const AttentionPlan& plan = place.head.plan;
  const std::size_t d = plan.features();
  multiply({place.keys.count,
            plan.width,
            columns_of(place.queries),
            {x + place.keys.first * d, d, 1},
            {y.at, kQueryTile},
            {tile, kQueryTile},
            {factor, 0},
            false});
}

HWY_INLINE void multiply_keys(const TilePlace& place, const BF16* x, const TransposedOf<BF16>& y,
                              const float* factor, float* tile) {
  const AttentionPlan& plan = place.head.plan;
  const std::size_t d = plan.features(), columns = columns_of(place.queries);
  plan.multiply_narrow({place.keys.count, plan.width, columns, x + place.keys.first * d, d, y.at,
                        kQueryTile, tile, kQueryTile, false});
  if (*factor != 1) scale_tile({tile, kQueryTile}, place.keys.count, columns, *factor);
}

// Writes `value` wherever a query does not see a key.
inline void hide(const TilePlace& place, float value, float* tile) {
  const auto& [head, queries, keys] = place;
  const std::size_t columns = columns_of(queries);
  for (std::size_t j = 0; head.has_holes && j < keys.count; ++j) {
    if (head.key_mask[keys.first + j] != 0) continue;
    std::fill_n(tile + j * kQueryTile, columns, value);
  }
  if (!head.plan.causal) return;
  const std::ptrdiff_t all_see = std::ptrdiff_t(queries.first) + head.plan.diagonal;
  const std::ptrdiff_t first =
      std::max<std::ptrdiff_t>(all_see + 1 - std::ptrdiff_t(keys.first), 0);
  for (std::size_t j = std::size_t(first); j < keys.count; ++j) {
    const auto blind = std::size_t(std::ptrdiff_t(keys.first + j) - all_see);
    std::fill_n(tile + j * kQueryTile, std::min(blind, columns), value);
  }
}

// Selects the probabilities that dropout keeps, or all of them without dropout.
struct AllKept {
  HWY_INLINE Floats only(Floats p) const { return p; }
};
struct Kept {
  hn::Mask<F> dropped;
  HWY_INLINE Floats only(Floats p) const { return hn::IfThenZeroElse(dropped, p); }
};

// Calls body(kept, at) for every key of the tile. `at` is the offset of the register of
// queries from `column` on.
template <class Body>
HWY_INLINE void for_keys(const TilePlace& place, std::size_t column, const Body& body) {
  const auto& [head, queries, keys] = place;
  if (!head.plan.has_dropout) {
    for (std::size_t j = 0; j < keys.count; ++j) body(AllKept{}, j * kQueryTile + column);
    return;
  }
  const Ints threshold = hn::Set(Bits(), head.plan.threshold);
  const Words row = hn::Set(U(), head.data_row);
  // The block number grows by 2^12 from one query to the next.
  const Words to_lane = hn::ShiftLeft<12>(hn::Iota(U(), 0));
  for (std::size_t j = 0; j < keys.count; j += 4) {
    const std::uint64_t block =
        attention_block(0, head.head, queries.first + column, keys.first + j);
    const PhiloxWords words =
        philox_words(head.plan.stream, row, hn::Add(hn::Set(U(), std::uint32_t(block)), to_lane));
    unrolled<4>([&](std::size_t n) KEEL_LOOP_BODY {
      if (j + n >= keys.count) return;
      const Ints sampled = hn::BitCast(Bits(), hn::ShiftRight<8>(words.w[n]));
      const Kept kept{hn::RebindMask(F(), hn::Lt(sampled, threshold))};
      body(kept, (j + n) * kQueryTile + column);
    });
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace keel::onednn
HWY_AFTER_NAMESPACE();

#endif  // toggled guard
