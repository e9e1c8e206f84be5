#include "src/ops/norm/pn_v.h"

#include "src/ops/norm/columns.h"

namespace keel {
namespace {

using In = PnVInput;
using Out = PnVOutput;
using BackIn = PnVBackwardInput;
using BackOut = PnVGradient;
using Types = std::vector<TensorType>;

Types infer(const InferContext& c) {
  const auto& attrs = c.attrs.as<PnVAttrs>();
  const Shape channels{expect_columns(c, In::kMask, attrs.eps).channels};
  expect_in_unit_interval(c, "keep", attrs.keep);
  expect_affine(c, In::kGain, In::kBias, channels);
  c.expect_shape(In::kPsi2, "psi2", channels);
  expect_statistics(c, In::kSquares, "squares", {square_rows(false), channels[0]}, attrs.training);
  const TensorType statistic{wide_type(c), channels};
  return {wide_x(c), statistic, type_if(attrs.training, statistic)};
}

Types infer_backward(const InferContext& c) {
  const auto& attrs = c.attrs.as<PnVBackwardAttrs>();
  const Shape channels{expect_columns(c, BackIn::kMask, attrs.eps).channels};
  const TensorType x = wide_x(c);
  if (c.has(BackIn::kGain)) c.expect_shape(BackIn::kGain, "gain", channels);
  c.expect_shape(BackIn::kRstd, "rstd", channels);
  expect_dy(c, BackIn::kDy);
  expect_sums(c, BackIn::kSums, "sums", {uncentred_sum_rows(false), channels[0]});
  return {x, gradient_type(c, BackIn::kGain), type_if(attrs.wants_dbias, {x.dtype, channels})};
}

// The sums that the backward is given: absent unless the forward was given its squares.
Value gradient_sums(BackwardContext& c, Value dy) {
  if (!has_own_statistics(c, "pn_v", kColumnSquares, In::kSquares, In::kMask)) return {};
  const Value sums = ops::uncentred_gradient_sums(
      c.graph, {c.input(In::kX), c.output(Out::kRstd), dy, c.input(In::kMask)});
  return sums_like_statistics(c, In::kSquares, sums);
}

void backward(BackwardContext& c) {
  const PnVBackwardAttrs attrs{c.attrs().as<PnVAttrs>(), c.input(In::kBias).valid()};
  const Value dy = gradient_like_x(c);
  const Value d = c.graph.add(kPnVBackward,
                              {c.input(In::kX), c.input(In::kGain), c.output(Out::kRstd), dy,
                               c.input(In::kMask), gradient_sums(c, dy)},
                              attrs);
  set_gradients(c, d);
}

}  // namespace

const OpInfo kPnV{
    .name = "pn_v",
    .inputs = {"x", "gain", "bias", "psi2", {"mask", DType::kU8}, {"squares", DType::kF64}},
    .output_names = {"y", "rstd", "next_psi2"},
    .attrs = PnVAttrs{},
    .infer = infer,
    .backward = backward,
    .gradient = GradientKind::kExact,
    .norm = NormTraits{.groups = NormGroups::kColumns},
    .in_place = {{In::kPsi2, Out::kNextPsi2}}};
const OpInfo kPnVBackward{
    .name = "pn_v_backward",
    .inputs = {"x", "gain", "rstd", "dy", {"mask", DType::kU8}, {"sums", DType::kF64}},
    .output_names = {"dx", "dgain", "dbias"},
    .attrs = PnVBackwardAttrs{},
    .infer = infer_backward,
    .forward = &kPnV,
    .in_place = {{BackIn::kDy, BackOut::kDx}}};

namespace ops {

Value pn_v(Graph& g, Value x, const NormAffine& affine, const PnVState& state,
           const PnVAttrs& attrs) {
  return g.add(kPnV, {x, affine.gain, affine.bias, state.psi2, state.mask, state.squares}, attrs);
}

}  // namespace ops
}  // namespace keel
