// The data of the kernels of relative attention: that of attention, and the keys of the distances
// in the orders in which tiles read them.
#pragma once

#include "backends/onednn/attention_plan.h"
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
  // The column of the first distance of a tile.
  std::size_t column_of(const QueryTile& queries, const KeyTile& keys) const {
    return std::size_t(top() - std::int64_t(queries.first + kQueryTile - 1) - sizes.memory() +
                       std::int64_t(keys.first));
  }
};

inline RelativePlan relative_plan(const NodeContext& context) {
  using In = RelativeAttentionInput;
  const auto attrs = context.attrs<RelativeAttentionAttrs>();
  return {relative_sizes(context.input(In::kQk).shape, context.input(In::kK).shape,
                         context.input(In::kP).shape, attrs.heads),
          attrs};
}

// The keys of a head's distances: `rows` (columns, width) and `across` (width, columns). A key of a
// distance below 0, which no query sees, is 0.
struct DistancePanels {
  float *rows, *across;

  DistancePanels(const RelativePlan& plan, void* workspace, std::size_t head)
      : rows(static_cast<float*>(workspace) + 2 * head * plan.panel()),
        across(rows + plan.panel()) {}
  static std::size_t floats(const RelativePlan& plan) {
    return 2 * plan.attention.heads * plan.panel();
  }
};
// Fills the panels of all heads from p.
void fill_panels(const RelativePlan& plan, const TensorRef& p, void* workspace);

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
