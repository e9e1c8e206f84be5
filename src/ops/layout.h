// Ops that only move elements: reshape, transpose, slice, split, concat, pad. Any element type;
// gradients of floating ones are exact.
#pragma once

#include "src/graph/graph.h"

namespace keel {

struct ReshapeAttrs {
  Shape shape;
  static constexpr auto fields() { return std::tuple{field("shape", &ReshapeAttrs::shape)}; }
};

struct TransposeAttrs {
  std::vector<std::int64_t> axes;  // output axis i is input axis axes[i]
  static constexpr auto fields() { return std::tuple{field("axes", &TransposeAttrs::axes)}; }
};

struct SliceAttrs {
  std::vector<std::int64_t> starts, sizes;  // one an axis
  static constexpr auto fields() {
    return std::tuple{field("starts", &SliceAttrs::starts), field("sizes", &SliceAttrs::sizes)};
  }
};

struct SplitAttrs {
  std::int64_t parts = 1;
  static constexpr auto fields() { return std::tuple{field("parts", &SplitAttrs::parts)}; }
};

struct ConcatAttrs {
  std::int64_t axis = 0;
  static constexpr auto fields() { return std::tuple{field("axis", &ConcatAttrs::axis)}; }
};

struct PadAttrs {
  std::vector<std::int64_t> before, after;  // elements added, one an axis
  double value = 0;
  static constexpr auto fields() {
    return std::tuple{field("before", &PadAttrs::before), field("after", &PadAttrs::after),
                      field("value", &PadAttrs::value)};
  }
};

extern const OpInfo kReshape, kTranspose, kSlice, kSplit, kConcat, kPad;

namespace ops {

// The same elements under another shape; never copies. Error unless the element counts agree.
Value reshape(Graph& g, Value x, const Shape& shape);
// Permutes the axes; `axes` must name each axis once.
Value transpose(Graph& g, Value x, std::vector<std::int64_t> axes);
// Returns x[start : start + size] along every axis.
Value slice(Graph& g, Value x, std::vector<std::int64_t> starts, std::vector<std::int64_t> sizes);
// Returns x[start : start + size] along one axis.
Value slice_axis(Graph& g, Value x, int axis, std::int64_t start, std::int64_t size);
// Cuts x along its first axis into equal parts, such as the time steps of a sequence. Parts whose
// size in bytes is a multiple of kAlignment are not copied. Error unless `parts` divides the axis.
std::vector<Value> split(Graph& g, Value x, std::int64_t parts);
// Joins along an axis; the other sizes must agree.
Value concat(Graph& g, const std::vector<Value>& parts, int axis);
// Pads x along every axis: `before` elements of `value` in front and `after` at the end.
Value pad(Graph& g, Value x, std::vector<std::int64_t> before, std::vector<std::int64_t> after,
          double value = 0);

}  // namespace ops
}  // namespace keel
