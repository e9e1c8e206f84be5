// The data of the attention kernels: for all heads, for one head of one row of the batch, and
// for a tile of its queries.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>

#include "backends/onednn/blocks.h"
#include "backends/onednn/kernels/bf16.h"
#include "backends/onednn/narrow_product.h"
#include "backends/onednn/philox_stream.h"
#include "src/ops/attention.h"
#include "src/runtime/backend.h"

namespace keel::onednn {

// A tile of probabilities has kKeyTile rows of kQueryTile: a row holds the values of all queries
// for one key. In this order the queries fill registers, maxima and sums need no reduction over
// lanes, and of all operands only q and dy are transposed. Two such tiles take 32 KiB.
inline constexpr std::size_t kQueryTile = 32, kKeyTile = 128;

struct AttentionPlan {
  std::size_t batch, heads, queries, keys, width;
  std::ptrdiff_t diagonal;  // query i sees keys up to i + diagonal when causal
  bool causal, has_dropout = false;
  float scale, factor = 1;     // factor: 1 / (1 - p)
  std::int32_t threshold = 0;  // a probability is kept when its 24 random bits are at least this
  PhiloxStream stream = {};    // its step is set when the kernel runs
  MultiplyNarrow multiply_narrow = nullptr;  // of factors of bf16

  // Causal, without dropout.
  AttentionPlan(const AttentionSizes& sizes, double scale)
      : batch(std::size_t(sizes.batch)),
        heads(std::size_t(sizes.heads)),
        queries(std::size_t(sizes.queries)),
        keys(std::size_t(sizes.keys)),
        width(std::size_t(sizes.width)),
        diagonal(std::ptrdiff_t(sizes.diagonal())),
        causal(true),
        scale(float(scale)) {}

  AttentionPlan(const AttentionSizes& sizes, const AttentionAttrs& attrs)
      : AttentionPlan(sizes, attention_scale(attrs, sizes)) {
    causal = attrs.causal, has_dropout = attrs.p > 0;
    factor = float(1 / (1 - attrs.p));
    threshold = std::int32_t(std::ceil(attrs.p * 0x1p24));
    stream = PhiloxStream::of(attrs, 0);
  }

  std::size_t features() const { return heads * width; }
};

// One head of one row of the batch.
struct AttentionHead {
  AttentionPlan plan;
  std::size_t row, head;
  const std::uint8_t* key_mask = nullptr;  // of this row
  std::size_t keys;                        // up to the last key that is not masked
  bool has_holes = false;                  // whether an earlier key is masked
  std::uint32_t data_row = 0;              // the row's number for dropout

  // Without a mask.
  AttentionHead(const AttentionPlan& of, std::size_t number)
      : plan(of), row(number / of.heads), head(number % of.heads), keys(of.keys) {}
  AttentionHead(const AttentionPlan& of, const Binding& b, std::size_t number)
      : AttentionHead(of, number) {
    using In = AttentionInput;
    if (const TensorRef& mask = b.inputs[In::kKeyMask]) {
      key_mask = mask.as<std::uint8_t>() + row * plan.keys;
      while (keys > 0 && key_mask[keys - 1] == 0) --keys;
      has_holes = keys > 0 && std::memchr(key_mask, 0, keys) != nullptr;
    }
    if (!plan.has_dropout) return;
    plan.stream.step = std::uint32_t(*b.inputs[In::kStep].as<std::int32_t>());
    data_row = std::uint32_t(*b.inputs[In::kFirstRow].as<std::int32_t>()) + std::uint32_t(row);
  }

  // The head's features in this row of a tensor with the shape of q, or of k.
  template <class T = float>
  T* of_queries(const TensorRef& t) const {
    return slice<T>(t, plan.queries);
  }
  template <class T = float>
  T* of_keys(const TensorRef& t) const {
    return slice<T>(t, plan.keys);
  }
  float* lse(const TensorRef& t) const {
    return t.as<float>() + (row * plan.heads + head) * plan.queries;
  }

 private:
  template <class T>
  T* slice(const TensorRef& t, std::size_t length) const {
    return t.as<T>() + row * length * plan.features() + head * plan.width;
  }
};

// Whether q, or the query of contents, is bf16, and so are the other factors.
inline bool has_narrow_factors(const NodeContext& context) {
  return context.input(0).dtype == DType::kBF16;
}

// Makes a kernel that calls run(head, binding, T()) for every head of every row of the batch, T
// being the type of q, k and v.
template <class Run>
Prepared by_heads(const NodeContext& context, Run run) {
  using In = AttentionInput;
  const auto attrs = context.attrs<AttentionAttrs>();
  AttentionPlan plan(
      attention_sizes(context.input(In::kQ).shape, context.input(In::kK).shape, attrs.heads),
      attrs);
  const bool is_narrow = has_narrow_factors(context);
  if (is_narrow) plan.multiply_narrow = narrow_product_here();
  if (is_narrow && plan.multiply_narrow == nullptr) return refuse_bf16_product(context);
  return kernel_of([plan, run](const Binding& b) {
    const std::size_t heads = plan.batch * plan.heads;
    if (heads == 0) return;
    parallel_blocks(std::int64_t(heads), [&](std::int64_t number) {
      const AttentionHead head(plan, b, std::size_t(number));
      plan.multiply_narrow ? run(head, b, BF16()) : run(head, b, float());
    });
  });
}

// A tile of up to kQueryTile queries; the first is a multiple of kQueryTile.
struct QueryTile {
  std::size_t first, count;
  std::size_t keys;          // the end of the keys that any of them may see
  std::size_t from_key = 0;  // where they begin, a multiple of kKeyTile

  QueryTile(const AttentionHead& h, std::size_t from)
      : first(from), count(std::min(kQueryTile, h.plan.queries - from)), keys(h.keys) {
    if (!h.plan.causal) return;
    const std::ptrdiff_t seen = std::ptrdiff_t(first + count) + h.plan.diagonal;
    keys = std::size_t(std::clamp<std::ptrdiff_t>(seen, 0, std::ptrdiff_t(keys)));
  }
};

// Keys [first, first + count); the first is a multiple of kKeyTile.
struct KeyTile {
  std::size_t first, count;

  KeyTile(const QueryTile& queries, std::size_t from)
      : first(from), count(std::min(kKeyTile, queries.keys - from)) {}
};

}  // namespace keel::onednn
