// Data of the attention kernels, for all heads and for one block; the keys that a query sees; and
// the probabilities that dropout keeps.
#pragma once

#include <cmath>

#include "backends/cuda/kernels/attention_tile.cuh"
#include "src/core/rng.h"

namespace keel::cuda {

// The data common to all heads.
struct Attention {
  AttentionSizes sizes;
  bool causal, has_dropout, is_narrow = false;  // is_narrow: q, k and v are bf16
  float scale, factor;                          // factor: 1 / (1 - p)
  std::uint32_t stream, threshold;              // kept when the 24 random bits are >= threshold
  std::uint64_t seed;
  Global<const std::uint8_t> key_mask;
  Global<const std::int32_t> step, first_row;
  Factor q, k, v;

  Attention(const AttentionSizes& of, const AttentionAttrs& attrs)
      : sizes(of),
        causal(attrs.causal),
        has_dropout(attrs.p > 0),
        scale(float(attention_scale(attrs, of))),
        factor(float(1 / (1 - attrs.p))),
        stream(static_cast<std::uint32_t>(attrs.stream)),
        threshold(static_cast<std::uint32_t>(std::ceil(attrs.p * 0x1p24))),
        seed(static_cast<std::uint64_t>(attrs.seed)) {}

  // The same, with the tensors of a node filled in.
  Attention bound(const Binding& b) const {
    using In = AttentionInput;
    Attention bound = *this;
    bound.key_mask = global<const std::uint8_t>(b.inputs[In::kKeyMask]);
    bound.step = global<const std::int32_t>(b.inputs[In::kStep]);
    bound.first_row = global<const std::int32_t>(b.inputs[In::kFirstRow]);
    bound.q = Factor(b.inputs[In::kQ]);
    bound.k = Factor(b.inputs[In::kK]);
    bound.v = Factor(b.inputs[In::kV]);
    bound.is_narrow = cuda::is_narrow(b.inputs[In::kQ]);
    return bound;
  }
  // The grid has one block for each tile of `length` queries or keys, in each head of each row.
  template <class T>
  Grid grid(std::int64_t length) const {
    return {sizes.batch * sizes.heads * ceil_div(length, T::kOwn), T::kBlock};
  }
};

inline Attention attention_of(const NodeContext& context) {
  using In = AttentionInput;
  const auto attrs = context.attrs<AttentionAttrs>();
  return {attention_sizes(context.input(In::kQ).shape, context.input(In::kK).shape, attrs.heads),
          attrs};
}

// The head of this block, and the block's own first query or key. The grid begins after `before`
// heads, counted through all rows.
struct AttentionPlace {
  std::int64_t row, head, first;

  __device__ AttentionPlace(const AttentionSizes& sizes, std::int64_t length, int own,
                            std::int64_t before = 0) {
    const std::int64_t tiles = (length + own - 1) / own;
    const std::int64_t number = before + blockIdx.x / tiles;
    row = number / sizes.heads, head = number % sizes.heads;
    first = blockIdx.x % tiles * own;
  }
  // The offset of query i in a tensor (b, heads, queries).
  __device__ std::int64_t per_query(const AttentionSizes& sizes, std::int64_t i) const {
    return (row * sizes.heads + head) * sizes.queries + i;
  }
  // The offset of the first feature of query or key i in a tensor (b, length, d).
  __device__ std::int64_t feature(const AttentionSizes& sizes, std::int64_t length,
                                  std::int64_t i) const {
    return (row * length + i) * sizes.features() + head * sizes.width;
  }
};

// A bit for each query that exists, from `first` on, as many as a word has bits.
__device__ inline std::uint32_t present_queries(const AttentionSizes& sizes, std::int64_t first) {
  const std::int64_t left = sizes.queries - first;
  return left >= kWarp ? kAllLanes : (1u << int(left)) - 1;
}
// A bit for each of the `count` keys from `first` on that exists and is not masked.
__device__ inline std::uint32_t present_keys(const Attention& of, std::int64_t row,
                                             std::int64_t first, int count) {
  const int n = int(threadIdx.x) % kWarp;
  const bool is_present = n < count && first + n < of.sizes.keys &&
                          of.key_mask.get(row * of.sizes.keys + first + n, 1) != 0;
  return __ballot_sync(kAllLanes, is_present);
}

// The random numbers of one head of one row.
struct AttentionDropout {
  Philox random;
  std::uint32_t row, threshold;
  std::uint64_t head;

  __device__ AttentionDropout(const Attention& of, const AttentionPlace& place)
      : random(of.seed, of.stream, static_cast<std::uint32_t>(of.step.get(0, 0))),
        row(static_cast<std::uint32_t>(of.first_row.get(0, 0)) +
            static_cast<std::uint32_t>(place.row)),
        threshold(of.threshold),
        head(static_cast<std::uint64_t>(place.head)) {}

  // Bit n says whether dropout keeps the probability of key j + n; j is a multiple of 4 and n < 4.
  __device__ std::uint32_t four_keys(std::int64_t i, std::int64_t j) const {
    const Philox4 words = random.block(
        attention_block(row, head, static_cast<std::uint64_t>(i), static_cast<std::uint64_t>(j)));
    std::uint32_t bits = 0;
    for (unsigned n = 0; n < 4; ++n) bits |= std::uint32_t{words[n] >> 8 >= threshold} << n;
    return bits;
  }
};

struct Unite {
  __device__ std::uint32_t operator()(std::uint32_t a, std::uint32_t b) const { return a | b; }
};

// A bit for each key from `first` on whose probability dropout keeps in a row; the threads of
// query i compute it together.
template <class T>
__device__ std::uint32_t kept_keys(const Attention& of, const AttentionDropout& dropout,
                                   std::int64_t i, std::int64_t first) {
  if (!of.has_dropout) return kAllLanes;
  const int four = 4 * T::lane();
  const std::uint32_t own = four < T::kOther ? dropout.four_keys(i, first + four) << four : 0;
  return over_lanes<T::kLanesARow>(own, Unite());
}

// Whether query i sees key `first + n`, given the bits of the keys from `first` on.
__device__ inline bool sees(const Attention& of, std::int64_t i, std::int64_t first, int n,
                            std::uint32_t bits) {
  return (bits >> n & 1) != 0 && (!of.causal || first + n <= i + of.sizes.diagonal());
}
// The end of the range of keys that any of `count` queries from i on may see.
__device__ inline std::int64_t keys_seen(const Attention& of, std::int64_t i, int count) {
  const std::int64_t seen = i + count + of.sizes.diagonal();
  return of.causal && seen < of.sizes.keys ? seen : of.sizes.keys;
}

// Calls take(first, present) for every tile of keys that a query of this block may see: the keys
// from `first` on whose bits are set. The panels hold their k and v. All threads must call it.
template <class T, class Take>
__device__ void each_key_tile(const Attention& of, const AttentionPlace& place,
                              typename T::OtherPanel& k, typename T::OtherPanel& v,
                              const Take& take) {
  const std::int64_t end = keys_seen(of, place.first, T::kOwn);
  for (std::int64_t first = 0; first < end; first += T::kOther) {
    const std::uint32_t present = present_keys(of, place.row, first, T::kOther);
    if (present == 0) continue;
    const std::int64_t from = place.feature(of.sizes, of.sizes.keys, first);
    __syncthreads();
    load_panel<T>(k, present, of.k, from, of.sizes);
    load_panel<T>(v, present, of.v, from, of.sizes);
    __syncthreads();
    take(first, present);
  }
}

}  // namespace keel::cuda
