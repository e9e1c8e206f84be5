#include "src/ops/norm/derf.h"

#include <cmath>
#include <numbers>

#include "src/ops/norm/row_norm.h"

namespace keel {
namespace {

using In = DerfInput;
using BackIn = DerfBackwardInput;
using BackOut = DerfGradient;
using Types = std::vector<TensorType>;

// Checks what forward and backward both have; `alpha` and `shift` are their places. Returns the
// shape of a row.
Shape expect_inputs(const InferContext& c, std::int64_t axes, int alpha, int shift) {
  expect_rows(c, axes);
  expect_number(c, alpha);
  if (c.has(shift)) expect_number(c, shift);
  return row_shape(c.shape(In::kX), axes);
}

Types infer(const InferContext& c) {
  const Shape row = expect_inputs(c, c.attrs.as<DerfAttrs>().axes, In::kAlpha, In::kShift);
  expect_affine(c, In::kGain, In::kBias, row);
  return {wide_x(c)};
}

Types infer_backward(const InferContext& c) {
  const auto& attrs = c.attrs.as<DerfBackwardAttrs>();
  const TensorType row{wide_type(c), expect_inputs(c, attrs.axes, BackIn::kAlpha, BackIn::kShift)};
  if (c.has(BackIn::kGain)) c.expect_shape(BackIn::kGain, "gain", row.shape);
  expect_dy(c, BackIn::kDy);
  return {wide_x(c), gradient_type(c, BackIn::kGain), type_if(attrs.wants_dbias, row),
          c.input(BackIn::kAlpha), gradient_type(c, BackIn::kShift)};
}

void backward(BackwardContext& c) {
  const DerfBackwardAttrs attrs{c.attrs().as<DerfAttrs>(), c.input(In::kBias).valid()};
  set_gradients(c, c.graph.add(kDerfBackward,
                               {c.input(In::kX), c.input(In::kGain), c.input(In::kAlpha),
                                c.input(In::kShift), gradient_like_x(c)},
                               attrs));
}

double slope(double u) { return 2 * std::numbers::inv_sqrtpi * std::exp(-u * u); }

const NormCurve kCurve{.value = [](double u) { return std::erf(u); },
                       .slope = slope,
                       .value_error = 1.8,
                       .slope_error = 2.5};

}  // namespace

const OpInfo kDerf{.name = "derf",
                   .inputs = {"x", "gain", "bias", "alpha", "shift"},
                   .output_names = {"y"},
                   .attrs = DerfAttrs{},
                   .infer = infer,
                   .backward = backward,
                   .gradient = GradientKind::kExact,
                   .norm = NormTraits{.groups = NormGroups::kElements, .curve = &kCurve}};
const OpInfo kDerfBackward{.name = "derf_backward",
                           .inputs = {"x", "gain", "alpha", "shift", "dy"},
                           .output_names = {"dx", "dgain", "dbias", "dalpha", "dshift"},
                           .attrs = DerfBackwardAttrs{},
                           .infer = infer_backward,
                           .forward = &kDerf,
                           .in_place = {{BackIn::kDy, BackOut::kDx}}};

namespace ops {

Value derf(Graph& g, Value x, const NormAffine& affine, const DerfCurve& curve,
           const DerfAttrs& attrs) {
  return g.add(kDerf, {x, affine.gain, affine.bias, curve.alpha, curve.shift}, attrs);
}

}  // namespace ops
}  // namespace keel
