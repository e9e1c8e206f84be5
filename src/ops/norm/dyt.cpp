#include "src/ops/norm/dyt.h"

#include <cmath>

#include "src/ops/norm/row_norm.h"

namespace keel {
namespace {

using In = DytInput;
using BackIn = DytBackwardInput;
using BackOut = DytGradient;
using Types = std::vector<TensorType>;

// Checks what forward and backward both have; `alpha` is its place. Returns the shape of a row.
Shape expect_inputs(const InferContext& c, std::int64_t axes, int alpha) {
  expect_rows(c, axes);
  expect_number(c, alpha);
  return row_shape(c.shape(In::kX), axes);
}

Types infer(const InferContext& c) {
  const Shape row = expect_inputs(c, c.attrs.as<DytAttrs>().axes, In::kAlpha);
  expect_affine(c, In::kGain, In::kBias, row);
  return {wide_x(c)};
}

Types infer_backward(const InferContext& c) {
  const auto& attrs = c.attrs.as<DytBackwardAttrs>();
  const TensorType row{wide_type(c), expect_inputs(c, attrs.axes, BackIn::kAlpha)};
  if (c.has(BackIn::kGain)) c.expect_shape(BackIn::kGain, "gain", row.shape);
  expect_dy(c, BackIn::kDy);
  return {wide_x(c), gradient_type(c, BackIn::kGain), type_if(attrs.wants_dbias, row),
          c.input(BackIn::kAlpha)};
}

void backward(BackwardContext& c) {
  const DytBackwardAttrs attrs{c.attrs().as<DytAttrs>(), c.input(In::kBias).valid()};
  set_gradients(
      c, c.graph.add(kDytBackward,
                     {c.input(In::kX), c.input(In::kGain), c.input(In::kAlpha), gradient_like_x(c)},
                     attrs));
}

double slope(double u) {
  const double cosh = std::cosh(u);
  return 1 / (cosh * cosh);
}

const NormCurve kCurve{.value = [](double u) { return std::tanh(u); },
                       .slope = slope,
                       .value_error = 2.2,
                       .slope_error = 2.5};

}  // namespace

const OpInfo kDyt{.name = "dyt",
                  .inputs = {"x", "gain", "bias", "alpha"},
                  .output_names = {"y"},
                  .attrs = DytAttrs{},
                  .infer = infer,
                  .backward = backward,
                  .gradient = GradientKind::kExact,
                  .norm = NormTraits{.groups = NormGroups::kElements, .curve = &kCurve}};
const OpInfo kDytBackward{.name = "dyt_backward",
                          .inputs = {"x", "gain", "alpha", "dy"},
                          .output_names = {"dx", "dgain", "dbias", "dalpha"},
                          .attrs = DytBackwardAttrs{},
                          .infer = infer_backward,
                          .forward = &kDyt,
                          .in_place = {{BackIn::kDy, BackOut::kDx}}};

namespace ops {

Value dyt(Graph& g, Value x, const NormAffine& affine, Value alpha, const DytAttrs& attrs) {
  return g.add(kDyt, {x, affine.gain, affine.bias, alpha}, attrs);
}

}  // namespace ops
}  // namespace keel
