#include "src/ops/conv2d.h"

#include "src/ops/image_order.h"
#include "src/ops/product_type.h"
#include "src/ops/reduce.h"

namespace keel {
namespace {

using Types = std::vector<TensorType>;
using In = ConvInput;

// Shape of y for images stored as `stored` and filters w; every geometric precondition is checked
// here. `attrs` is of the forward or of a backward.
template <class Attrs>
Shape output_shape(const InferContext& c, const Shape& stored, const Shape& w, const Attrs& attrs) {
  const auto [stride, padding] = std::pair{attrs.stride, attrs.padding};
  c.expect(stored.rank() == 4, "x", attrs.channels_last ? "(n, h, w, c)" : "(n, c, h, w)",
           stored.text());
  const Shape x = image_sizes(stored, attrs.channels_last);
  c.expect(w.rank() == 4 && w[1] == x[1], "weight", fmt::format("(o, {}, kh, kw)", x[1]), w.text());
  c.expect(stride >= 1, "stride", ">= 1", fmt::format("{}", stride));
  c.expect(padding >= 0, "padding", ">= 0", fmt::format("{}", padding));
  Shape y{x[0], w[0], 0, 0};
  for (int axis : {2, 3}) {
    const std::int64_t room = x[axis] + 2 * padding - w[axis];
    c.expect(room >= 0 && w[axis] >= 1, "weight", "a window inside the padded image " + x.text(),
             w.text());
    y = y.with(axis, room / stride + 1);
  }
  return stored_shape(y, attrs.channels_last);
}

Types infer(const InferContext& c) {
  const auto& attrs = c.attrs.as<ConvAttrs>();
  c.expect_floating(In::kX, "x");
  c.expect_dtype(In::kWeight, "type of weight", c.dtype(In::kX));
  const Shape y = output_shape(c, c.shape(In::kX), c.shape(In::kWeight), attrs);
  const DType result = product_type(c.dtype(In::kX));
  if (c.has(In::kBias)) {
    c.expect_shape(In::kBias, "bias", Shape{c.shape(In::kWeight)[0]});
    c.expect_dtype(In::kBias, "type of bias", result);
  }
  return {{result, y}};
}

Types infer_backward_input(const InferContext& c) {
  const auto& attrs = c.attrs.as<ConvBackwardAttrs>();
  using Dx = ConvDxInput;
  c.expect_shape(Dx::kDy, "dy", output_shape(c, attrs.shape, c.shape(Dx::kWeight), attrs));
  c.expect_dtype(Dx::kWeight, "type of weight", c.dtype(Dx::kDy));
  return {{product_type(c.dtype(Dx::kDy)), attrs.shape}};
}

Types infer_backward_weight(const InferContext& c) {
  const auto& attrs = c.attrs.as<ConvBackwardAttrs>();
  using Dweight = ConvDweightInput;
  c.expect_shape(Dweight::kDy, "dy", output_shape(c, c.shape(Dweight::kX), attrs.shape, attrs));
  c.expect_dtype(Dweight::kDy, "type of dy", c.dtype(Dweight::kX));
  return {{product_type(c.dtype(Dweight::kX)), attrs.shape}};
}

void backward(BackwardContext& c) {
  const auto& attrs = c.attrs().as<ConvAttrs>();
  check(attrs.activation == Activation::kNone && !attrs.channels_last, ErrorKind::kUsage,
        "[conv2d] gradients are built before passes set activation and channels_last");
  const auto attrs_for = [&](int input) {
    return ConvBackwardAttrs{attrs.stride, attrs.padding, c.graph.shape(c.input(input))};
  };
  const Value x = c.input(In::kX), weight = c.input(In::kWeight);
  const Value dy =
      c.needs(In::kX) || c.needs(In::kWeight) ? as_factor(c.graph, c.grad(), x) : Value{};
  if (c.needs(In::kX)) {
    c.set(In::kX, c.graph.add(kConv2dBackwardInput, {dy, weight}, attrs_for(In::kX)));
  }
  if (c.needs(In::kWeight)) {
    c.set(In::kWeight, c.graph.add(kConv2dBackwardWeight, {x, dy}, attrs_for(In::kWeight)));
  }
  if (c.needs(In::kBias)) c.set(In::kBias, ops::sum(c.graph, c.grad(), {0, 2, 3}));
}

}  // namespace

const OpInfo kConv2d{.name = "conv2d",
                     .inputs = {"x", "weight", "bias"},
                     .attrs = ConvAttrs{},
                     .infer = infer,
                     .backward = backward,
                     .gradient = GradientKind::kExact};
const OpInfo kConv2dBackwardInput{.name = "conv2d_backward_input",
                                  .inputs = {"dy", "weight"},
                                  .attrs = ConvBackwardAttrs{},
                                  .infer = infer_backward_input};
const OpInfo kConv2dBackwardWeight{.name = "conv2d_backward_weight",
                                   .inputs = {"x", "dy"},
                                   .attrs = ConvBackwardAttrs{},
                                   .infer = infer_backward_weight};

namespace ops {

Value conv2d(Graph& g, Value x, Value weight, const ConvOptions& options) {
  return g.add(kConv2d, {x, weight, options.bias}, ConvAttrs{options.stride, options.padding});
}

}  // namespace ops
}  // namespace keel
