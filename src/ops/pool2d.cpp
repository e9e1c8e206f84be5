#include "src/ops/pool2d.h"

namespace keel {
namespace {

using Types = std::vector<TensorType>;

Shape output_shape(const InferContext& c, const Shape& x, std::int64_t window,
                   std::int64_t stride) {
  c.expect(x.rank() == 4, "x", "(n, c, h, w)", x.text());
  c.expect(window >= 1 && window <= 15 && window <= x[2] && window <= x[3], "window",
           "1 to 15 and inside the image " + x.text(), fmt::format("{}", window));
  c.expect(stride >= 1, "stride", ">= 1", fmt::format("{}", stride));
  return x.with(2, (x[2] - window) / stride + 1).with(3, (x[3] - window) / stride + 1);
}

Types infer_avg(const InferContext& c) {
  const auto& attrs = c.attrs.as<PoolAttrs>();
  c.expect_floating(0, "x");
  return {{c.dtype(0), output_shape(c, c.shape(0), attrs.window, attrs.stride)}};
}

Types infer_max(const InferContext& c) {
  Types types = infer_avg(c);
  types.push_back({DType::kU8, types[0].shape});
  return types;
}

Types infer_backward(const InferContext& c) {
  const auto& attrs = c.attrs.as<PoolBackwardAttrs>();
  c.expect_shape(0, "dy", output_shape(c, attrs.shape, attrs.window, attrs.stride));
  if (c.has(1)) c.expect_shape(1, "index", c.shape(0));
  return {{c.dtype(0), attrs.shape}};
}

PoolBackwardAttrs backward_attrs(BackwardContext& c) {
  const auto& attrs = c.attrs().as<PoolAttrs>();
  return {attrs.window, attrs.stride, c.graph.shape(c.input(0))};
}

void backward_max(BackwardContext& c) {
  c.set(0, c.graph.add(kMaxPool2dBackward, {c.grad(), c.output(1)}, backward_attrs(c)));
}

void backward_avg(BackwardContext& c) {
  c.set(0, c.graph.add(kAvgPool2dBackward, {c.grad()}, backward_attrs(c)));
}

}  // namespace

const OpInfo kMaxPool2d{.name = "max_pool2d",
                        .infer = infer_max,
                        .backward = backward_max,
                        .gradient = GradientKind::kExact};
const OpInfo kAvgPool2d{.name = "avg_pool2d",
                        .infer = infer_avg,
                        .backward = backward_avg,
                        .gradient = GradientKind::kExact};
const OpInfo kMaxPool2dBackward{.name = "max_pool2d_backward", .infer = infer_backward};
const OpInfo kAvgPool2dBackward{.name = "avg_pool2d_backward", .infer = infer_backward};

namespace ops {

Value max_pool2d(Graph& g, Value x, std::int64_t window, std::int64_t stride) {
  return g.add(kMaxPool2d, {x}, PoolAttrs{window, stride});
}

Value avg_pool2d(Graph& g, Value x, std::int64_t window, std::int64_t stride) {
  return g.add(kAvgPool2d, {x}, PoolAttrs{window, stride});
}

}  // namespace ops
}  // namespace keel
