// Checks that column norms, with or without a row mask, apply to their inputs.
#pragma once

#include "src/ops/column_gradient_sums.h"
#include "src/ops/column_moments.h"
#include "src/ops/norm/norm.h"
#include "src/ops/norm/sizes.h"
#include "src/ops/shard_parts.h"

namespace keel {

// Returns the sizes of x; `mask` is the place of its row mask. Throws unless x is floating, is
// (rows, channels) or (n, channels, h, w), and has at least one element a feature. The mask must be
// absent or, for tokens, u8 (rows).
inline ColumnSizes expect_columns(const InferContext& c, int mask) {
  const Shape& x = c.shape(NormInput::kX);
  c.expect_floating(NormInput::kX, "x");
  c.expect(x.rank() == 2 || x.rank() == 4, "x", "(rows, channels) or (n, channels, h, w)",
           x.text());
  const ColumnSizes sizes = column_sizes(x);
  c.expect(sizes.count() >= 1, "x", "at least one element a feature", x.text());
  if (!c.has(mask)) return sizes;
  c.expect(x.rank() == 2, "mask", "none for images", c.shape(mask).text());
  c.expect_shape(mask, "mask", Shape{sizes.outer});
  c.expect_dtype(mask, "mask", DType::kU8);
  return sizes;
}

// Throws in the same cases, for eps < 0, and without a feature: the code that computes the first
// one counts the steps.
inline ColumnSizes expect_columns(const InferContext& c, int mask, double eps) {
  const ColumnSizes sizes = expect_columns(c, mask);
  c.expect(sizes.channels >= 1, "x", "at least one feature", c.shape(NormInput::kX).text());
  expect_statistic(c, {eps}, sizes.count());
  return sizes;
}

// Throws unless an attribute that is a fraction lies in [0, 1].
inline void expect_in_unit_interval(const InferContext& c, std::string_view what, double value) {
  c.expect(value >= 0 && value <= 1, what, "in [0, 1]", fmt::format("{}", value));
}

// Throws unless the sums given to a norm are f64 of the shape `expected`, or absent.
inline void expect_sums(const InferContext& c, int place, std::string_view what,
                        const Shape& expected) {
  if (!c.has(place)) return;
  c.expect_shape(place, what, expected);
  c.expect_dtype(place, what, DType::kF64);
}

// The same check for the statistics of a forward, which must be absent in evaluation.
inline void expect_statistics(const InferContext& c, int place, std::string_view what,
                              const Shape& expected, bool training) {
  if (!c.has(place)) return;
  c.expect(training, what, "none in evaluation", c.shape(place).text());
  expect_sums(c, place, what, expected);
}

inline bool is_merged(const Node& statistics) {
  return statistics.op == &kMergeMoments || statistics.op == &kMergeSums;
}

// The part of a norm's statistics that comes from its own rows: all of them, or what it gave where
// it took those of all shards; absent if it gave none.
inline Value own_part(const Graph& g, Value statistics) {
  const Node& node = g.node(statistics);
  return is_merged(node) ? given_for(g, node.inputs[0]) : statistics;
}

// Whether a node was given its statistics. Throws unless `maker` computed them, or its own part of
// them, from the node's own x and mask: only then do the gradient sums of x, merged in the same
// way, suffice for the backward.
inline bool has_own_statistics(const BackwardContext& c, std::string_view op, const OpInfo& maker,
                               int place, int mask) {
  const Value given = c.input(place);
  if (!given.valid()) return false;
  const Value own = own_part(c.graph, given);
  const Node& node = c.graph.node(own.valid() ? own : given);
  const bool is_own = node.op == &maker &&
                      node.inputs[ColumnMomentsInput::kX] == c.input(NormInput::kX) &&
                      node.inputs[ColumnMomentsInput::kMask] == c.input(mask);
  check(is_own, ErrorKind::kUsage,
        "[{}] statistics: expected {} of its own x and mask, got {}; the gradient by way of merged "
        "ones needs merged gradient sums",
        op, maker.name, node.name);
  return true;
}

// The gradient sums of a norm's own rows, or of those of all shards, as its statistics are.
inline Value sums_like_statistics(BackwardContext& c, int place, Value sums) {
  const Node& statistics = c.graph.node(c.input(place));
  if (!is_merged(statistics)) return sums;
  const std::int64_t shards = c.graph.shape(statistics.inputs[0])[0];
  return ops::merge_sums(c.graph, ops::all_shards(c.graph, sums, shards));
}

}  // namespace keel
