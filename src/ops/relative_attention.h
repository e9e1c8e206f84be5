// Multi-head attention over a memory and the queries' own positions, in which scores also depend on
// the distance of a key (Dai et al. 2019, "Transformer-XL", section 3.3). The shift that turns
// products by distance into products by key is part of the op, and no kernel holds more than a tile
// of scores. For each head, on its slice of features:
//     s_ij = scale (qk_i . k_j + qp_i . p_r),   r = min(i + m - j, distances - 1)
//     y = softmax(s) v
//
//   qk, qp (b, tq, d)   the queries, plus the biases u and w of content and of distance
//   k, v (b, tk, d)     floating; the first m = tk - tq keys are the memory, key m + i is i's own
//   p (distances, d)    a key for each distance 0, 1, ...; the last one serves all beyond it
//   filled i32 (b) or absent: keys of the memory that exist in each row, its last ones, 0 to m
// Head h has the features [h w, (h + 1) w) of d. Query i sees key j unless
//     j > i + m, or j < m - filled, or the distance i + m - j is `window` or more, if window > 0.
// A key that a query does not see has probability 0 and must be finite.
//   outputs: y (b, tq, d); lse (b, heads, tq), the log of the sum of exp(s) over the keys that a
//     query sees, only for the backward.
//   scale: 0 stands for 1 / sqrt(w).
// backward (Exact), from (qk, qp, k, v, p, filled, y, lse, dy), with P = exp(s - lse) and delta the
// sums of dy y over a head's features:
//     dv_j = sum_i P_ij dy_i          dS = P (dy v^T - delta)
//     dqk_i = scale sum_j dS_ij k_j   dqp_i = scale sum_j dS_ij p_r
//     dk_j = scale sum_i dS_ij qk_i   dp_r = scale sum dS_ij qp_i over the batch and (i, j) of r
// qk, qp, k, v and p may be bf16; everything else is float32 then. Products round their other
// factors to bf16: exp(s) up to a power of 2, P, dS and dy.
//   outputs: dqk, dqp, dk, dv, dp. The bits of dp depend on the batch, those of the others only on
//     the own row.
// errors: ranks, types, and sizes that do not fit; fewer keys than queries; more distances than
// keys; heads wider than 256; a negative window; a gradient that comes in by lse.      in place:
// none.
#pragma once

#include <algorithm>

#include "src/graph/graph.h"

namespace keel {

struct RelativeAttentionInput {
  enum Place : int { kQk, kQp, kK, kV, kP, kFilled, kY, kLse, kDy };
};
struct RelativeAttentionOutput {
  enum Place : int { kY, kLse };
};
struct RelativeAttentionGradient {
  enum Place : int { kDqk, kDqp, kDk, kDv, kDp };
};

struct RelativeAttentionAttrs {
  std::int64_t heads = 1;
  double scale = 0;
  std::int64_t window = 0;
  static constexpr auto fields() {
    return std::tuple{field("heads", &RelativeAttentionAttrs::heads),
                      field("scale", &RelativeAttentionAttrs::scale),
                      field("window", &RelativeAttentionAttrs::window)};
  }
};

struct RelativeSizes {
  std::int64_t batch, heads, queries, keys, width, distances;  // width of a head

  constexpr std::int64_t features() const { return heads * width; }
  constexpr std::int64_t memory() const { return keys - queries; }
};
RelativeSizes relative_sizes(const Shape& q, const Shape& k, const Shape& p, std::int64_t heads);
double relative_scale(const RelativeAttentionAttrs& attrs, std::int64_t width);

// The first key that query i sees in a row whose memory has `filled` keys. It sees all keys from
// there to its own.
constexpr std::int64_t first_key_seen(const RelativeSizes& sizes, std::int64_t window,
                                      std::int64_t filled, std::int64_t i) {
  const std::int64_t memory = sizes.memory(),
                     kept = std::clamp<std::int64_t>(memory - filled, 0, memory);
  return window > 0 ? std::max(kept, i + memory - window + 1) : kept;
}

extern const OpInfo kRelativeAttention, kRelativeAttentionBackward;

namespace ops {

struct RelativeAttentionOperands {
  Value q, k, v, p;
  Value u, w;  // (d): the biases of content and of distance, which are added to every query
  Value filled = {};
};
// Returns y; lse is another output.
Value relative_attention(Graph& g, const RelativeAttentionOperands& operands,
                         const RelativeAttentionAttrs& attrs);

}  // namespace ops
}  // namespace keel
