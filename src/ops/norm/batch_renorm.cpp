#include "src/ops/norm/batch_renorm.h"

#include "src/ops/norm/columns.h"

namespace keel {
namespace {

using In = BatchRenormInput;
using Out = BatchRenormOutput;
using BackIn = BatchRenormBackwardInput;
using BackOut = BatchRenormGradient;
using Types = std::vector<TensorType>;

ColumnSizes expect_renorm(const InferContext& c, const BatchRenormAttrs& attrs, int mask) {
  const auto expect = [&](bool holds, std::string_view what, const char* expected, double got) {
    c.expect(holds, what, expected, fmt::format("{}", got));
  };
  const ColumnSizes sizes = expect_columns(c, mask, attrs.eps);
  expect_in_unit_interval(c, "rate", attrs.rate);
  expect(attrs.r_max < 0 || attrs.r_max >= 1, "r_max", ">= 1, or < 0 for the schedule",
         attrs.r_max);
  expect(attrs.r_max_limit >= 1, "r_max_limit", ">= 1", attrs.r_max_limit);
  expect(attrs.d_max_limit >= 0, "d_max_limit", ">= 0", attrs.d_max_limit);
  return sizes;
}

Types infer(const InferContext& c) {
  const auto& attrs = c.attrs.as<BatchRenormAttrs>();
  const Shape channels{expect_renorm(c, attrs, In::kMask).channels};
  expect_affine(c, In::kGain, In::kBias, channels);
  c.expect_shape(In::kRunningMean, "running_mean", channels);
  c.expect_shape(In::kRunningStd, "running_std", channels);
  c.expect_shape(In::kStep, "step", {});
  c.expect_dtype(In::kStep, "step", DType::kI32);
  expect_statistics(c, In::kMoments, "moments", {MomentRow::kRows, channels[0]}, attrs.training);
  const TensorType saved{wide_type(c), channels}, state = type_if(attrs.training, saved);
  return {wide_x(c), saved, saved, saved,
          saved,     state, state, type_if(attrs.training, c.input(In::kStep))};
}

Types infer_backward(const InferContext& c) {
  const auto& attrs = c.attrs.as<BatchRenormBackwardAttrs>();
  const Shape channels{expect_renorm(c, attrs, BackIn::kMask).channels};
  const TensorType x = wide_x(c);
  if (c.has(BackIn::kGain)) c.expect_shape(BackIn::kGain, "gain", channels);
  for (const auto& [place, name] : {std::pair{BackIn::kMean, "mean"},
                                    {BackIn::kRstd, "rstd"},
                                    {BackIn::kR, "r"},
                                    {BackIn::kD, "d"}}) {
    c.expect_shape(place, name, channels);
  }
  expect_dy(c, BackIn::kDy);
  expect_sums(c, BackIn::kSums, "sums", {centred_sum_rows(false), channels[0]});
  return {x, gradient_type(c, BackIn::kGain), type_if(attrs.wants_dbias, {x.dtype, channels})};
}

// The sums that the backward is given: absent unless the forward was given its moments.
Value gradient_sums(BackwardContext& c, Value dy) {
  if (!has_own_statistics(c, "batch_renorm", kColumnMoments, In::kMoments, In::kMask)) return {};
  const Value sums = ops::centred_gradient_sums(
      c.graph,
      {c.input(In::kX), c.output(Out::kMean), c.output(Out::kRstd), dy, c.input(In::kMask)});
  return sums_like_statistics(c, In::kMoments, sums);
}

void backward(BackwardContext& c) {
  const BatchRenormBackwardAttrs attrs{c.attrs().as<BatchRenormAttrs>(),
                                       c.input(In::kBias).valid()};
  const Value dy = gradient_like_x(c);
  const Value d = c.graph.add(
      kBatchRenormBackward,
      {c.input(In::kX), c.input(In::kGain), c.output(Out::kMean), c.output(Out::kRstd),
       c.output(Out::kR), c.output(Out::kD), dy, c.input(In::kMask), gradient_sums(c, dy)},
      attrs);
  set_gradients(c, d);
}

std::optional<double> kept(const Attrs& of) { return 1 - of.as<BatchRenormAttrs>().rate; }

}  // namespace

const OpInfo kBatchRenorm{
    .name = "batch_renorm",
    .inputs = {"x",
               "gain",
               "bias",
               "running_mean",
               "running_std",
               {"step", DType::kI32},
               {"mask", DType::kU8},
               {"moments", DType::kF64}},
    .output_names = {"y", "mean", "rstd", "r", "d", "next_running_mean", "next_running_std",
                     "next_step"},
    .attrs = BatchRenormAttrs{},
    .infer = infer,
    .backward = backward,
    .gradient = GradientKind::kDetached,
    .norm = NormTraits{.groups = NormGroups::kColumns, .by_running_statistics = true, .kept = kept},
    .in_place = {{In::kRunningMean, Out::kNextRunningMean},
                 {In::kRunningStd, Out::kNextRunningStd}}};
const OpInfo kBatchRenormBackward{
    .name = "batch_renorm_backward",
    .inputs =
        {"x", "gain", "mean", "rstd", "r", "d", "dy", {"mask", DType::kU8}, {"sums", DType::kF64}},
    .output_names = {"dx", "dgain", "dbias"},
    .attrs = BatchRenormBackwardAttrs{},
    .infer = infer_backward,
    .forward = &kBatchRenorm,
    .in_place = {{BackIn::kDy, BackOut::kDx}}};

namespace ops {

Value batch_renorm(Graph& g, Value x, const NormAffine& affine, const RenormState& state,
                   const BatchRenormAttrs& attrs) {
  return g.add(
      kBatchRenorm,
      {x, affine.gain, affine.bias, state.mean, state.std, state.step, state.mask, state.moments},
      attrs);
}

}  // namespace ops
}  // namespace keel
