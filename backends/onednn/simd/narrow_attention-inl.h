// Tiles of probabilities as factors of bf16, compiled once per instruction set. A tile of kKeyTile
// or fewer terms has zeros up to a multiple of kTermStep, which the products take at a time.
#if defined(KEEL_BACKENDS_ONEDNN_SIMD_NARROW_ATTENTION_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KEEL_BACKENDS_ONEDNN_SIMD_NARROW_ATTENTION_INL_H_
#undef KEEL_BACKENDS_ONEDNN_SIMD_NARROW_ATTENTION_INL_H_
#else
#define KEEL_BACKENDS_ONEDNN_SIMD_NARROW_ATTENTION_INL_H_
#endif

#include "backends/onednn/simd/attention_softmax-inl.h"

HWY_BEFORE_NAMESPACE();
namespace keel::onednn {
namespace HWY_NAMESPACE {

inline constexpr std::size_t kTermStep = 32;
static_assert(kQueryTile % kTermStep == 0 && kKeyTile % kTermStep == 0);

constexpr std::size_t whole_terms(std::size_t n) {
  return (n + kTermStep - 1) / kTermStep * kTermStep;
}

// Rows of bf16 as a second factor whose terms are the rows: (pairs of rows, width).
template <std::size_t kRows>
struct RowPairs {
  HWY_ALIGN Pair at[kRows / 2 * kWidestHead];

  template <class T>
  void fill(std::size_t count, std::size_t width, const Rows<const T>& x) {
    for (std::size_t i = 0; i < whole_terms(count); i += 2) {
      Pair* const to = at + i / 2 * width;
      if (i >= count) {
        std::fill_n(to, width, Pair{0});
        continue;
      }
      const T* const row = x.at + i * x.row;
      join_rows(row, i + 1 < count ? row + x.row : nullptr, width, to);
    }
  }
};

// A tile of probabilities, or of their gradients, as a first factor: (keys, kQueryTile).
struct FactorByKey {
  HWY_ALIGN BF16 at[kKeyTile * kQueryTile];

  void fill(const TilePlace& place, const float* tile) {
    const std::size_t columns = columns_of(place.queries);
    for (std::size_t j = 0; j < place.keys.count; ++j) {
      round_row(tile + j * kQueryTile, at + j * kQueryTile, columns);
      std::fill_n(at + j * kQueryTile + columns, kQueryTile - columns, BF16(0.0f));
    }
  }
};

// The same by query: (queries, kKeyTile).
struct FactorByQuery {
  HWY_ALIGN BF16 at[kQueryTile * kKeyTile];

  void fill(const TilePlace& place, const float* tile) {
    HWY_ALIGN Pair pairs[kKeyTile / 2 * kQueryTile];
    const std::size_t count = place.keys.count, terms = whole_terms(count);
    for (std::size_t j = 0; j < terms; j += 2) {
      Pair* const to = pairs + j / 2 * kQueryTile;
      if (j >= count) {
        std::fill_n(to, place.queries.count, Pair{0});
        continue;
      }
      const float* const row = tile + j * kQueryTile;
      join_rows(row, j + 1 < count ? row + kQueryTile : nullptr, place.queries.count, to);
    }
    transpose_tile({pairs, reinterpret_cast<Pair*>(at), std::int64_t(kQueryTile),
                    std::int64_t(kKeyTile / 2), std::int64_t(terms / 2),
                    std::int64_t(place.queries.count)});
  }
};

// y = p v, or y + p v, with the probabilities p of a tile.
inline void add_values(const TilePlace& place, const float* tile, const BF16* v, float* y,
                       bool adds) {
  const AttentionPlan& plan = place.head.plan;
  const std::size_t d = plan.features(), count = place.keys.count;
  FactorByQuery p;
  RowPairs<kKeyTile> values;
  p.fill(place, tile);
  values.fill(count, plan.width, Rows<const BF16>{v + place.keys.first * d, d});
  plan.multiply_narrow({place.queries.count, whole_terms(count), plan.width, p.at, kKeyTile,
                        values.at, plan.width, y, d, adds});
}
inline void add_values(const TilePlace& place, const float* tile, const float* v, float* y,
                       bool adds) {
  const std::size_t d = place.head.plan.features();
  multiply({place.queries.count,
            place.keys.count,
            place.head.plan.width,
            {tile, 1, kQueryTile},
            {v + place.keys.first * d, d},
            {y, d},
            {&kOne, 0},
            adds});
}

// A tile of queries as second factors of the products for dk and dv.
struct QueryPairs {
  RowPairs<kQueryTile> q, dy;

  QueryPairs(const AttentionHead& h, const QueryTile& queries, const BF16* of_q,
             const float* of_dy) {
    const std::size_t d = h.plan.features(), first = queries.first * d;
    q.fill(queries.count, h.plan.width, Rows<const BF16>{of_q + first, d});
    dy.fill(queries.count, h.plan.width, Rows<const float>{of_dy + first, d});
  }
};

struct HeadGradients {
  float *dq, *dk, *dv;
};

// Adds what a tile of probabilities and their gradients gives, without the factors of sums; dq is
// written if nothing has been added to it before.
inline void add_gradients(const TilePlace& place, const QueryPairs& by, const ScoreTile* tiles,
                          const BF16* k, const HeadGradients& to) {
  const auto& [head, queries, keys] = place;
  const AttentionPlan& plan = head.plan;
  const std::size_t d = plan.features(), w = plan.width, j = keys.first * d;
  FactorByKey by_key;
  by_key.fill(place, tiles[0].at);
  plan.multiply_narrow(
      {keys.count, kQueryTile, w, by_key.at, kQueryTile, by.dy.at, w, to.dv + j, d, true});
  by_key.fill(place, tiles[1].at);
  plan.multiply_narrow(
      {keys.count, kQueryTile, w, by_key.at, kQueryTile, by.q.at, w, to.dk + j, d, true});
  FactorByQuery by_query;
  RowPairs<kKeyTile> pairs;
  by_query.fill(place, tiles[1].at);
  pairs.fill(keys.count, w, Rows<const BF16>{k + j, d});
  plan.multiply_narrow({queries.count, whole_terms(keys.count), w, by_query.at, kKeyTile, pairs.at,
                        w, to.dq + queries.first * d, d, keys.first > queries.from_key});
}

}  // namespace HWY_NAMESPACE
}  // namespace keel::onednn
HWY_AFTER_NAMESPACE();

#endif  // toggled guard
