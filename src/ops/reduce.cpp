#include "src/ops/reduce.h"

#include <algorithm>

#include "src/ops/elementwise.h"
#include "src/ops/layout.h"

namespace keel {
namespace {

using Types = std::vector<TensorType>;

Shape dropped_shape(const Shape& x, const std::vector<std::int64_t>& axes) {
  std::vector<std::int64_t> sizes;
  for (int axis = 0; axis < x.rank(); ++axis) {
    if (std::ranges::find(axes, axis) == axes.end()) sizes.push_back(x[axis]);
  }
  return Shape(sizes);
}

Types infer_reduce(const InferContext& c) {
  const auto& attrs = c.attrs.as<ReduceAttrs>();
  c.expect_floating(0, "x");
  std::int64_t previous = -1;
  for (std::int64_t axis : attrs.axes) {
    c.expect(axis > previous && axis < c.shape(0).rank(), "axes",
             fmt::format("distinct axes of {}", c.shape(0).text()), attr_text(attrs.axes));
    previous = axis;
  }
  const Shape kept = kept_shape(c.shape(0), attrs.axes);
  const bool is_empty = c.shape(0).elements() == 0 && kept.elements() > 0;
  c.expect(!is_empty || &c.op == &kSum, "x", "elements to reduce", c.shape(0).text());
  return {{c.dtype(0), attrs.keep_dims ? kept : dropped_shape(c.shape(0), attrs.axes)}};
}

Types infer_max_backward(const InferContext& c) {
  using In = MaxBackwardInput;
  c.expect_shape(In::kY, "y", c.shape(In::kDy));
  broadcast(c.shape(In::kDy), c.shape(In::kX));
  return {c.input(In::kX)};
}

Types infer_broadcast(const InferContext& c) {
  const Shape& shape = c.attrs.as<BroadcastAttrs>().shape;
  c.expect(broadcast(c.shape(0), shape) == shape, "x", "a shape that stretches to " + shape.text(),
           c.shape(0).text());
  return {{c.dtype(0), shape}};
}

// dy with the reduced axes put back as sizes of 1.
Value kept(BackwardContext& c, Value v) {
  return ops::reshape(c.graph, v,
                      kept_shape(c.graph.shape(c.input(0)), c.attrs().as<ReduceAttrs>().axes));
}

void backward_sum(BackwardContext& c) {
  c.set(0, ops::broadcast_to(c.graph, kept(c, c.grad()), c.graph.shape(c.input(0))));
}

void backward_mean(BackwardContext& c) {
  const Shape& x = c.graph.shape(c.input(0));
  const double count = double(x.elements()) / double(c.graph.shape(c.output(0)).elements());
  const Value dy = ops::scale(c.graph, kept(c, c.grad()), 1 / count);
  c.set(0, ops::broadcast_to(c.graph, dy, x));
}

void backward_max(BackwardContext& c) {
  c.set(0, c.graph.add(kMaxBackward, {kept(c, c.grad()), c.input(0), kept(c, c.output(0))}));
}

void backward_broadcast(BackwardContext& c) {
  c.set(0, ops::sum_to(c.graph, c.grad(), c.graph.shape(c.input(0))));
}

Value reduce(Graph& g, const OpInfo& op, Value x, std::vector<std::int64_t> axes, bool keep_dims) {
  const Shape& shape = g.shape(x);
  if (axes.empty()) {
    for (int axis = 0; axis < shape.rank(); ++axis) axes.push_back(axis);
  }
  for (std::int64_t& axis : axes) axis += axis < 0 ? shape.rank() : 0;
  std::ranges::sort(axes);
  return g.add(op, {x}, ReduceAttrs{std::move(axes), keep_dims});
}

}  // namespace

const OpInfo kSum{.name = "sum",
                  .inputs = {"x"},
                  .attrs = ReduceAttrs{},
                  .infer = infer_reduce,
                  .backward = backward_sum,
                  .gradient = GradientKind::kExact};
const OpInfo kMean{.name = "mean",
                   .inputs = {"x"},
                   .attrs = ReduceAttrs{},
                   .infer = infer_reduce,
                   .backward = backward_mean,
                   .gradient = GradientKind::kExact};
const OpInfo kMax{.name = "max",
                  .inputs = {"x"},
                  .attrs = ReduceAttrs{},
                  .infer = infer_reduce,
                  .backward = backward_max,
                  .gradient = GradientKind::kExact};
const OpInfo kMaxBackward{
    .name = "max_backward", .inputs = {"dy", "x", "y"}, .infer = infer_max_backward};
const OpInfo kBroadcastTo{.name = "broadcast_to",
                          .inputs = {{"x", kAnyType}},
                          .attrs = BroadcastAttrs{},
                          .infer = infer_broadcast,
                          .backward = backward_broadcast,
                          .gradient = GradientKind::kExact};

Shape kept_shape(const Shape& x, const std::vector<std::int64_t>& axes) {
  Shape shape = x;
  for (std::int64_t axis : axes) shape = shape.with(static_cast<int>(axis), 1);
  return shape;
}

namespace ops {

Value sum(Graph& g, Value x, std::vector<std::int64_t> axes, bool keep_dims) {
  return reduce(g, kSum, x, std::move(axes), keep_dims);
}
Value mean(Graph& g, Value x, std::vector<std::int64_t> axes, bool keep_dims) {
  return reduce(g, kMean, x, std::move(axes), keep_dims);
}
Value max(Graph& g, Value x, std::vector<std::int64_t> axes, bool keep_dims) {
  return reduce(g, kMax, x, std::move(axes), keep_dims);
}

Value broadcast_to(Graph& g, Value x, const Shape& shape) {
  return g.shape(x) == shape ? x : g.add(kBroadcastTo, {x}, BroadcastAttrs{shape});
}

Value sum_to(Graph& g, Value x, const Shape& shape) {
  const Shape from = g.shape(x);
  if (from == shape) return x;
  std::vector<std::int64_t> axes;
  const int lead = from.rank() - shape.rank();
  for (int axis = 0; axis < from.rank(); ++axis) {
    if (axis < lead || (shape[axis - lead] == 1 && from[axis] != 1)) axes.push_back(axis);
  }
  const Value summed = axes.empty() ? x : sum(g, x, axes, true);
  return reshape(g, summed, shape);
}

}  // namespace ops
}  // namespace keel
