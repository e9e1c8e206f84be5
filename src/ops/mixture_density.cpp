#include "src/ops/mixture_density.h"

namespace keel {
namespace {

using In = MixtureInput;

void expect_points(const InferContext& c) {
  const Shape& y = c.shape(In::kY);
  c.expect_floating(In::kY, "y");
  c.expect(y.rank() == 2 && y[1] >= 7 && y[1] % MixturePart::kCount == 1, "y",
           "(points, 1 + 6 components)", y.text());
  c.expect_dtype(In::kPoints, "points", c.dtype(In::kY));
  c.expect_shape(In::kPoints, "points", Shape{y[0], 3});
  if (!c.has(In::kMask)) return;
  c.expect_dtype(In::kMask, "mask", DType::kU8);
  c.expect_shape(In::kMask, "mask", Shape{y[0]});
}

std::vector<TensorType> infer(const InferContext& c) {
  expect_points(c);
  const auto& attrs = c.attrs.as<MixtureAttrs>();
  c.expect(attrs.largest_rho > 0, "largest_rho", "above 0", fmt::format("{}", attrs.largest_rho));
  const TensorType rows{c.dtype(In::kY), {c.shape(In::kY)[0]}};
  return {rows, rows};
}

std::vector<TensorType> infer_backward(const InferContext& c) {
  expect_points(c);
  c.expect_shape(In::kDnll, "dnll", Shape{c.shape(In::kY)[0]});
  return {c.input(In::kY)};
}

void backward(BackwardContext& c) {
  const Value dnll = c.grad(MixtureOutput::kNll);
  if (!c.needs(In::kY) || !dnll.valid()) return;
  c.set(In::kY,
        c.graph.add(kMixtureDensityBackward,
                    {c.input(In::kY), c.input(In::kPoints), c.input(In::kMask), dnll}, c.attrs()));
}

}  // namespace

MixtureSizes mixture_sizes(const Shape& y) { return {y[0], y[1] / MixturePart::kCount}; }

const OpInfo kMixtureDensity{.name = "mixture_density",
                             .inputs = {"y", "points", {"mask", DType::kU8}},
                             .attrs = MixtureAttrs{},
                             .infer = infer,
                             .backward = backward,
                             .gradient = GradientKind::kExact};
const OpInfo kMixtureDensityBackward{.name = "mixture_density_backward",
                                     .inputs = {"y", "points", {"mask", DType::kU8}, "dnll"},
                                     .attrs = MixtureAttrs{},
                                     .infer = infer_backward,
                                     .in_place = {{In::kY, 0}}};

namespace ops {

Mixture mixture_density(Graph& g, Value y, Value points, Value mask, const MixtureAttrs& attrs) {
  const Value nll = g.add(kMixtureDensity, {y, points, mask}, attrs);
  return {nll, nll.at(MixtureOutput::kHeld)};
}

}  // namespace ops
}  // namespace keel
