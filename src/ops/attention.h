// Multi-head attention (Vaswani et al. 2017, eq. 1) that holds a tile of scores, in CUDA's backward
// some of dS (Dao 2023, "FlashAttention-2", algorithms 1 and 2). For each head, on its features:
//     y = dropout(softmax(scale q k^T + mask)) v
//
//   q (b, tq, d)   k, v (b, tk, d)   floating;  head h has the features [h w, (h + 1) w) of d
//   key_mask u8 (b, tk) or absent: query i sees key j of its row unless
//     key_mask is 0 there, or `causal` and j > i + (tk - tq). A key
//     that a query does not see has probability 0 and must be finite.
//   outputs: y (b, tq, d); lse (b, heads, tq), the log of the sum of exp(scale q k^T)
//     over the keys that a query sees, only for the backward. A query that sees no
//     key has y = 0 and lse = 0, so that no value of a healthy run is infinite.
//   scale: 0 stands for 1 / sqrt(w).
// p: dropout of probabilities. Kept ones are divided by 1 - p. The draws belong to the update
// `step` () i32 and to the rows of the batch from number `first_row` () i32 on; both are absent for
// p = 0. Key j of query i in head h of row r is dropped when its number from attention_bits() is
// below p, so padding or splitting a batch changes no draw.
// backward (Exact for the mask that was sampled), from (q, k, v, y, lse, dy), with
// P = exp(scale q k^T - lse), keep = 0 or 1 / (1 - p), delta = sums of dy y over a head's features:
//     dv = (keep P)^T dy    dS = P (keep (dy v^T) - delta)    dq = scale dS k    dk = scale dS^T q
//   outputs: dq, dk, dv like q, k, v; 0 for a key that no query sees.
// q, k and v may be bf16; everything else is float32 then. Products round their other factors to
// bf16: exp(scale q k^T) up to a power of 2, and in the backward P, dS and dy.
// The bits of a row depend neither on other rows nor on masked keys at the row's end.
// errors: ranks, types, and sizes that do not fit; heads wider than 256; p outside of [0, 1); with
// dropout more than 64 heads or more than 16384 queries or keys; a gradient that comes in by lse.
// in place: none.
#pragma once

#include "src/core/rng.h"
#include "src/graph/graph.h"

namespace keel {

// Inputs and outputs have these places. The backward has the inputs of the forward and three more.
struct AttentionInput {
  enum Place : int { kQ, kK, kV, kKeyMask, kStep, kFirstRow, kY, kLse, kDy };
};
struct AttentionOutput {
  enum Place : int { kY, kLse };
};
struct AttentionGradient {
  enum Place : int { kDq, kDk, kDv };
};

struct AttentionAttrs {
  std::int64_t heads = 1;
  double scale = 0;
  bool causal = false;
  double p = 0;
  std::int64_t seed = 0, stream = 0;
  static constexpr auto fields() {
    return std::tuple{
        field("heads", &AttentionAttrs::heads),   field("scale", &AttentionAttrs::scale),
        field("causal", &AttentionAttrs::causal), field("p", &AttentionAttrs::p),
        field("seed", &AttentionAttrs::seed),     field("stream", &AttentionAttrs::stream)};
  }
};

inline constexpr std::int64_t kWidestHead = 256;
// The limits of dropout: with them the number of a probability has 34 bits.
inline constexpr std::int64_t kMostDropoutHeads = 64, kLongestDropout = 1 << 14;

struct AttentionSizes {
  std::int64_t batch, heads, queries, keys, width;  // width of a head

  constexpr std::int64_t features() const { return heads * width; }
  // Query i sees keys up to i + diagonal() when causal.
  constexpr std::int64_t diagonal() const { return keys - queries; }
};
AttentionSizes attention_sizes(const Shape& q, const Shape& k, std::int64_t heads);
double attention_scale(const AttentionAttrs& attrs, const AttentionSizes& sizes);

// The block of random words for keys j to j + 3, where j is a multiple of 4: key j + n takes word
// n. `row` counts from the first row of the data that the batch is a part of.
constexpr std::uint64_t attention_block(std::uint32_t row, std::uint64_t head, std::uint64_t i,
                                        std::uint64_t j) {
  return std::uint64_t{row} << 32 | head << 26 | i << 12 | j >> 2;
}
// The 32 bits of one probability; the upper 24 are its uniform number.
constexpr std::uint32_t attention_bits(const Philox& random, std::uint32_t row, std::uint64_t head,
                                       std::uint64_t i, std::uint64_t j) {
  return random.block(attention_block(row, head, i, j))[j % 4];
}

extern const OpInfo kAttention, kAttentionBackward;

namespace ops {

struct AttentionOperands {
  Value q, k, v;
  Value key_mask = {};
  Value step = {}, first_row = {};  // not read for p = 0
};
// Returns y; lse is another output. The stream of dropout is the hash of the node's name.
Value attention(Graph& g, const AttentionOperands& operands, AttentionAttrs attrs);

}  // namespace ops
}  // namespace keel
