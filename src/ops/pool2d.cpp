#include "src/ops/pool2d.h"

#include "src/ops/image_order.h"

namespace keel {
namespace {

using Types = std::vector<TensorType>;

// Shape of y for images stored as `stored`; `attrs` is of the forward or of a backward.
template <class Attrs>
Shape output_shape(const InferContext& c, const Shape& stored, const Attrs& attrs) {
  const auto [window, stride] = std::pair{attrs.window, attrs.stride};
  c.expect(stored.rank() == 4, "x", attrs.channels_last ? "(n, h, w, c)" : "(n, c, h, w)",
           stored.text());
  const Shape x = image_sizes(stored, attrs.channels_last);
  c.expect(window >= 1 && window <= 15 && window <= x[2] && window <= x[3], "window",
           "1 to 15 and inside the image " + x.text(), fmt::format("{}", window));
  c.expect(stride >= 1, "stride", ">= 1", fmt::format("{}", stride));
  const Shape y = x.with(2, (x[2] - window) / stride + 1).with(3, (x[3] - window) / stride + 1);
  return stored_shape(y, attrs.channels_last);
}

Types infer_avg(const InferContext& c) {
  const auto& attrs = c.attrs.as<PoolAttrs>();
  c.expect_floating(0, "x");
  return {{c.dtype(0), output_shape(c, c.shape(0), attrs)}};
}

Types infer_max(const InferContext& c) {
  Types types = infer_avg(c);
  types.push_back({DType::kU8, types[0].shape});
  return types;
}

Types infer_backward(const InferContext& c) {
  const auto& attrs = c.attrs.as<PoolBackwardAttrs>();
  using In = PoolBackwardInput;
  c.expect_shape(In::kDy, "dy", output_shape(c, attrs.shape, attrs));
  if (c.has(In::kIndex)) c.expect_shape(In::kIndex, "index", c.shape(In::kDy));
  return {{c.dtype(In::kDy), attrs.shape}};
}

PoolBackwardAttrs backward_attrs(BackwardContext& c) {
  const auto& attrs = c.attrs().as<PoolAttrs>();
  check(!attrs.channels_last, ErrorKind::kUsage,
        "[pool2d] gradients are built before a pass sets channels_last");
  return {attrs.window, attrs.stride, c.graph.shape(c.input(0))};
}

void backward_max(BackwardContext& c) {
  c.set(0, c.graph.add(kMaxPool2dBackward, {c.grad(), c.output(MaxPoolOutput::kIndex)},
                       backward_attrs(c)));
}

void backward_avg(BackwardContext& c) {
  c.set(0, c.graph.add(kAvgPool2dBackward, {c.grad()}, backward_attrs(c)));
}

}  // namespace

const OpInfo kMaxPool2d{.name = "max_pool2d",
                        .inputs = {"x"},
                        .attrs = PoolAttrs{},
                        .infer = infer_max,
                        .backward = backward_max,
                        .gradient = GradientKind::kExact};
const OpInfo kAvgPool2d{.name = "avg_pool2d",
                        .inputs = {"x"},
                        .attrs = PoolAttrs{},
                        .infer = infer_avg,
                        .backward = backward_avg,
                        .gradient = GradientKind::kExact};
const OpInfo kMaxPool2dBackward{.name = "max_pool2d_backward",
                                .inputs = {"dy", {"index", DType::kU8}},
                                .attrs = PoolBackwardAttrs{},
                                .infer = infer_backward};
const OpInfo kAvgPool2dBackward{.name = "avg_pool2d_backward",
                                .inputs = {"dy"},
                                .attrs = PoolBackwardAttrs{},
                                .infer = infer_backward};

namespace ops {

Value max_pool2d(Graph& g, Value x, std::int64_t window, std::int64_t stride) {
  return g.add(kMaxPool2d, {x}, PoolAttrs{window, stride});
}

Value avg_pool2d(Graph& g, Value x, std::int64_t window, std::int64_t stride) {
  return g.add(kAvgPool2d, {x}, PoolAttrs{window, stride});
}

}  // namespace ops
}  // namespace keel
