// The data of the kernels of relative attention: that of attention, and the keys of the distances
// in the orders in which tiles read them.
#pragma once

#include "backends/onednn/attention_plan.h"
#include "backends/onednn/panels.h"
#include "src/ops/relative_attention.h"

namespace keel::onednn {

// A tile of kQueryTile queries and n keys meets kQueryTile + n - 1 distances. Products by distance
// are computed for all queries and distances of a tile: row i has the queries' products with the
// distances from the largest to the smallest. In query i's row its product with the tile's key j is
// j + kQueryTile - 1 - i places from the beginning, so that a row stride less by one lines the
// products of a key up: the shift is a stride.
inline constexpr std::size_t kTileDistances = kQueryTile + kKeyTile;  // one more than there are
inline constexpr std::size_t kShiftedStride = kTileDistances - 1, kShiftedStart = kQueryTile - 1;

struct RelativePlan {
  RelativeSizes sizes;
  AttentionPlan attention;
  std::int64_t window;

  RelativePlan(const RelativeSizes& of, const RelativeAttentionAttrs& attrs)
      : sizes(of),
        attention({of.batch, of.heads, of.queries, of.keys, of.width},
                  relative_scale(attrs, of.width)),
        window(attrs.window) {}

  // Column c of a panel has the distance top() - c. Some columns before the largest distance and
  // after the smallest are read by tiles that are not whole.
  std::int64_t top() const { return sizes.keys - 1 + std::int64_t(kQueryTile); }
  std::size_t columns() const { return attention.keys + kTileDistances; }
  std::size_t panel() const { return columns() * attention.width; }
  bool is_narrow() const { return attention.multiply_narrow != nullptr; }
  // The column of the first distance of a tile.
  std::size_t column_of(const QueryTile& queries, const KeyTile& keys) const {
    return std::size_t(top() - std::int64_t(queries.first + kQueryTile - 1) - sizes.memory() +
                       std::int64_t(keys.first));
  }
};

inline RelativePlan relative_plan(const NodeContext& context) {
  using In = RelativeAttentionInput;
  const auto attrs = context.attrs<RelativeAttentionAttrs>();
  RelativePlan plan(relative_sizes(context.input(In::kQk).shape, context.input(In::kK).shape,
                                   context.input(In::kP).shape, attrs.heads),
                    attrs);
  if (has_narrow_factors(context)) plan.attention.multiply_narrow = narrow_product_here();
  return plan;
}

// The keys of a head's distances, of the type T of factors: `rows` (columns, width), and `across`
// (width, columns), or pairs of features instead of these. A key of a distance below 0, which no
// query sees, is 0.
template <class T>
struct DistancePanels {
  T* rows;
  Packed<T>* across;

  DistancePanels(const RelativePlan& plan, void* workspace, std::size_t head) {
    std::byte* const at = static_cast<std::byte*>(workspace) + head * bytes_of_head(plan);
    rows = reinterpret_cast<T*>(at);
    across = reinterpret_cast<Packed<T>*>(at + bytes_of_rows(plan));
  }
  static std::size_t bytes(const RelativePlan& plan) {
    return plan.attention.heads * bytes_of_head(plan);
  }

 private:
  static std::size_t bytes_of_rows(const RelativePlan& plan) {
    return std::size_t(aligned_size(std::int64_t(plan.panel() * sizeof(T))));
  }
  static std::size_t bytes_of_head(const RelativePlan& plan) {
    const std::size_t across = packed_terms<T>(plan.attention.width) * plan.columns();
    return bytes_of_rows(plan) +
           std::size_t(aligned_size(std::int64_t(across * sizeof(Packed<T>))));
  }
};
// Fills the panels of all heads from p.
template <class T>
void fill_panels(const RelativePlan& plan, const TensorRef& p, void* workspace);
extern template void fill_panels<float>(const RelativePlan&, const TensorRef&, void*);
extern template void fill_panels<BF16>(const RelativePlan&, const TensorRef&, void*);

// One head of one row of the batch.
struct RelativeHead {
  RelativePlan plan;
  AttentionHead head;
  std::int64_t filled;

  RelativeHead(const RelativePlan& of, const Binding& b, std::size_t number)
      : plan(of), head(of.attention, number), filled(of.sizes.memory()) {
    const TensorRef& count = b.inputs[RelativeAttentionInput::kFilled];
    if (count) filled = count.as<std::int32_t>()[head.row];
  }
  std::int64_t first_key(std::size_t query) const {
    return first_key_seen(plan.sizes, plan.window, filled, std::int64_t(query));
  }
  // A later query sees no key before those of the first.
  QueryTile tile(std::size_t from) const {
    QueryTile queries(head, from);
    queries.from_key = std::size_t(first_key(from)) / kKeyTile * kKeyTile;
    return queries;
  }
};

}  // namespace keel::onednn
