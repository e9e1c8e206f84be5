// Reductions over axes, and their inverse.
//
//   sum   y = sum of x over the axes        dx = dy, stretched
//   mean  y = sum / count                   dx = dy / count, stretched
//   max   y = largest x                     dx = dy at the first largest element, 0 elsewhere
//
// x floating, any shape; axes distinct (negative ones count from the end; none means all).
// keep_dims leaves a size of 1 where an axis was. A mean or max over no elements is an error.
#pragma once

#include "src/graph/graph.h"

namespace keel {

// The inputs of max_backward have these places.
struct MaxBackwardInput {
  enum Place : int { kDy, kX, kY };
};

struct ReduceAttrs {
  std::vector<std::int64_t> axes;  // resolved and ascending
  bool keep_dims = false;
  static constexpr auto fields() {
    return std::tuple{field("axes", &ReduceAttrs::axes),
                      field("keep_dims", &ReduceAttrs::keep_dims)};
  }
};

struct BroadcastAttrs {
  Shape shape;
  static constexpr auto fields() { return std::tuple{field("shape", &BroadcastAttrs::shape)}; }
};

extern const OpInfo kSum, kMean, kMax;
extern const OpInfo kMaxBackward;  // (dy, x, y), shapes with the axes kept -> dx
extern const OpInfo kBroadcastTo;  // x stretched to a shape

// The shape of x reduced over `axes` with sizes of 1 kept.
Shape kept_shape(const Shape& x, const std::vector<std::int64_t>& axes);

namespace ops {

Value sum(Graph& g, Value x, std::vector<std::int64_t> axes = {}, bool keep_dims = false);
Value mean(Graph& g, Value x, std::vector<std::int64_t> axes = {}, bool keep_dims = false);
Value max(Graph& g, Value x, std::vector<std::int64_t> axes = {}, bool keep_dims = false);
Value broadcast_to(Graph& g, Value x, const Shape& shape);
// The inverse of broadcasting: adds x up over the axes along which `shape` was stretched.
Value sum_to(Graph& g, Value x, const Shape& shape);

}  // namespace ops
}  // namespace keel
