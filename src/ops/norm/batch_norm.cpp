#include "src/ops/norm/batch_norm.h"

#include "src/ops/norm/columns.h"

namespace keel {
namespace {

using In = BatchNormInput;
using Out = BatchNormOutput;
using BackIn = BatchNormBackwardInput;
using BackOut = BatchNormGradient;
using Types = std::vector<TensorType>;

ColumnSizes expect_batch(const InferContext& c, const BatchNormAttrs& attrs, int mask) {
  const ColumnSizes sizes = expect_columns(c, mask);
  const bool wants_unbiased = attrs.unbiased || attrs.running_unbiased;
  expect_statistic(c, {attrs.eps, attrs.training && wants_unbiased, false}, sizes.count());
  expect_in_unit_interval(c, "keep", attrs.keep);
  for (const auto& [name, weight] : {std::pair{"mean_penalty", attrs.mean_penalty},
                                     {"deviation_penalty", attrs.deviation_penalty}}) {
    c.expect(weight >= 0, name, ">= 0", fmt::format("{}", weight));
  }
  return sizes;
}

Types infer(const InferContext& c) {
  const auto& attrs = c.attrs.as<BatchNormAttrs>();
  const Shape channels{expect_batch(c, attrs, In::kMask).channels};
  expect_affine(c, In::kGain, In::kBias, channels);
  c.expect_shape(In::kRunningMean, "running_mean", channels);
  c.expect_shape(In::kRunningVar, "running_var", channels);
  expect_statistics(c, In::kMoments, "moments", {MomentRow::kRows, channels[0]}, attrs.training);
  const TensorType statistic{wide_type(c), channels};
  const TensorType state = type_if(attrs.training, statistic);
  return {wide_x(c), statistic, statistic, state, state};
}

// The running statistics after the step, which only a penalty needs.
void expect_running(const InferContext& c, const BatchNormAttrs& attrs, const Shape& channels) {
  for (const auto& [place, name] : {std::pair{BackIn::kNextRunningMean, "next_running_mean"},
                                    {BackIn::kNextRunningVar, "next_running_var"}}) {
    c.expect(c.has(place) || !attrs.has_penalty(), name, "that of the forward for a penalty",
             "none");
    if (c.has(place)) c.expect_shape(place, name, channels);
  }
}

Types infer_backward(const InferContext& c) {
  const auto& attrs = c.attrs.as<BatchNormBackwardAttrs>();
  const Shape channels{expect_batch(c, attrs, BackIn::kMask).channels};
  const TensorType x = wide_x(c);
  if (c.has(BackIn::kGain)) c.expect_shape(BackIn::kGain, "gain", channels);
  c.expect_shape(BackIn::kMean, "mean", channels);
  c.expect_shape(BackIn::kRstd, "rstd", channels);
  expect_dy(c, BackIn::kDy);
  expect_sums(c, BackIn::kSums, "sums", {centred_sum_rows(attrs.counts_padding()), channels[0]});
  expect_running(c, attrs, channels);
  return {x, gradient_type(c, BackIn::kGain), type_if(attrs.wants_dbias, {x.dtype, channels})};
}

// The sums that the backward is given: absent unless the forward was given its moments.
Value gradient_sums(BackwardContext& c, Value dy) {
  if (!has_own_statistics(c, "batch_norm", kColumnMoments, In::kMoments, In::kMask)) return {};
  const Value sums = ops::centred_gradient_sums(
      c.graph,
      {c.input(In::kX), c.output(Out::kMean), c.output(Out::kRstd), dy, c.input(In::kMask)},
      {c.attrs().as<BatchNormAttrs>().counts_padding()});
  return sums_like_statistics(c, In::kMoments, sums);
}

void backward(BackwardContext& c) {
  const BatchNormBackwardAttrs attrs{c.attrs().as<BatchNormAttrs>(), c.input(In::kBias).valid()};
  const Value dy = gradient_like_x(c);
  const auto running = [&](int output) { return attrs.has_penalty() ? c.output(output) : Value{}; };
  const Value d = c.graph.add(kBatchNormBackward,
                              {c.input(In::kX), c.input(In::kGain), c.output(Out::kMean),
                               c.output(Out::kRstd), dy, c.input(In::kMask), gradient_sums(c, dy),
                               running(Out::kNextRunningMean), running(Out::kNextRunningVar)},
                              attrs);
  set_gradients(c, d);
}

}  // namespace

const OpInfo kBatchNorm{
    .name = "batch_norm",
    .inputs = {"x",
               "gain",
               "bias",
               "running_mean",
               "running_var",
               {"mask", DType::kU8},
               {"moments", DType::kF64}},
    .output_names = {"y", "mean", "rstd", "next_running_mean", "next_running_var"},
    .attrs = BatchNormAttrs{},
    .infer = infer,
    .backward = backward,
    .gradient = GradientKind::kExact,
    .norm = NormTraits{.groups = NormGroups::kColumns},
    .in_place = {{In::kRunningMean, Out::kNextRunningMean},
                 {In::kRunningVar, Out::kNextRunningVar}}};
const OpInfo kBatchNormBackward{.name = "batch_norm_backward",
                                .inputs = {"x",
                                           "gain",
                                           "mean",
                                           "rstd",
                                           "dy",
                                           {"mask", DType::kU8},
                                           {"sums", DType::kF64},
                                           "next_running_mean",
                                           "next_running_var"},
                                .output_names = {"dx", "dgain", "dbias"},
                                .attrs = BatchNormBackwardAttrs{},
                                .infer = infer_backward,
                                .forward = &kBatchNorm,
                                .in_place = {{BackIn::kDy, BackOut::kDx}}};

namespace ops {

Value batch_norm(Graph& g, Value x, const NormAffine& affine, const RunningStatistics& running,
                 const BatchNormAttrs& attrs) {
  return g.add(
      kBatchNorm,
      {x, affine.gain, affine.bias, running.mean, running.var, running.mask, running.moments},
      attrs);
}

}  // namespace ops
}  // namespace keel
