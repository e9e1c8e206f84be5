#include "src/ops/norm/power_norm.h"

#include "src/ops/norm/columns.h"

namespace keel {
namespace {

using In = PowerNormInput;
using Out = PowerNormOutput;
using BackIn = PowerNormBackwardInput;
using BackOut = PowerNormGradient;
using Types = std::vector<TensorType>;

// `mask` is the place of the mask. Returns the type of one value a channel.
TensorType expect_common(const InferContext& c, const PowerNormAttrs& attrs, int mask) {
  expect_in_unit_interval(c, "alpha_f", attrs.alpha_f);
  expect_in_unit_interval(c, "alpha_b", attrs.alpha_b);
  const ColumnSizes sizes = expect_columns(c, mask, attrs.eps);
  c.expect(attrs.groups >= 0, "groups", ">= 0", fmt::format("{}", attrs.groups));
  if (attrs.is_scaled()) {
    const Shape& x = c.shape(In::kX);
    c.expect(x.rank() == 2, "x", "(rows, channels) with groups", x.text());
    expect_scaling(c, {attrs.groups, attrs.scaling_eps});
  }
  return {wide_type(c), {sizes.channels}};
}

// The type of row_rstd, which is absent without groups.
TensorType scaling_type(const InferContext& c, const PowerNormAttrs& attrs) {
  return type_if(attrs.is_scaled(), {wide_type(c), {c.shape(In::kX)[0], attrs.groups}});
}

void expect_no_groups(const InferContext& c, const PowerNormAttrs& attrs, int place,
                      std::string_view what) {
  if (!c.has(place)) return;
  c.expect(!attrs.is_scaled(), what, "none with groups", c.shape(place).text());
}

void expect_step(const InferContext& c, std::int64_t warmup) {
  c.expect(warmup >= 0, "warmup", ">= 0", fmt::format("{}", warmup));
  c.expect(warmup == 0 || c.has(In::kStep), "step", "a counter when there is a warm-up", "none");
  if (!c.has(In::kStep)) return;
  c.expect_shape(In::kStep, "step", {});
  c.expect_dtype(In::kStep, "step", DType::kI32);
}

Types infer(const InferContext& c) {
  const auto& attrs = c.attrs.as<PowerNormAttrs>();
  const TensorType statistic = expect_common(c, attrs, In::kMask);
  expect_affine(c, In::kGain, In::kBias, statistic.shape);
  c.expect_shape(In::kPsi2, "psi2", statistic.shape);
  c.expect_shape(In::kNu, "nu", statistic.shape);
  expect_step(c, attrs.warmup);
  expect_no_groups(c, attrs, In::kSquares, "squares");
  expect_statistics(c, In::kSquares, "squares", {square_rows(attrs.pad_stats), statistic.shape[0]},
                    attrs.training);
  const TensorType state = type_if(attrs.training, statistic);
  const TensorType step = type_if(attrs.training && c.has(In::kStep), {DType::kI32, {}});
  const TensorType watched = type_if(attrs.training, {statistic.dtype, {}});
  return {wide_x(c), statistic, statistic,
          state,     state,     step,
          watched,   watched,   scaling_type(c, attrs)};
}

Types infer_backward(const InferContext& c) {
  const auto& attrs = c.attrs.as<PowerNormBackwardAttrs>();
  const TensorType statistic = expect_common(c, attrs, BackIn::kMask);
  if (c.has(BackIn::kGain)) c.expect_shape(BackIn::kGain, "gain", statistic.shape);
  c.expect_shape(BackIn::kRstd, "rstd", statistic.shape);
  c.expect_shape(BackIn::kRdx, "rdx", statistic.shape);
  if (attrs.training) c.expect_shape(BackIn::kGamma, "Gamma", statistic.shape);
  c.expect_shape(BackIn::kNu, "nu", statistic.shape);
  expect_dy(c, BackIn::kDy);
  expect_no_groups(c, attrs, BackIn::kSums, "sums");
  expect_sums(c, BackIn::kSums, "sums", {uncentred_sum_rows(attrs.pad_stats), statistic.shape[0]});
  if (attrs.is_scaled()) c.expect_shape(BackIn::kRowRstd, "row_rstd", scaling_type(c, attrs).shape);
  return {wide_x(c), gradient_type(c, BackIn::kGain), type_if(attrs.wants_dbias, statistic),
          type_if(attrs.training, statistic)};
}

// The sums that the backward is given: absent unless the forward was given its squares.
Value gradient_sums(BackwardContext& c, Value dy) {
  if (!has_own_statistics(c, "power_norm", kColumnSquares, In::kSquares, In::kMask)) return {};
  const Value sums = ops::uncentred_gradient_sums(
      c.graph, {c.input(In::kX), c.output(Out::kRstd), dy, c.input(In::kMask)},
      {c.attrs().as<PowerNormAttrs>().pad_stats});
  return sums_like_statistics(c, In::kSquares, sums);
}

void backward(BackwardContext& c) {
  const PowerNormBackwardAttrs attrs{c.attrs().as<PowerNormAttrs>(), c.input(In::kBias).valid()};
  const Value gamma = attrs.training ? c.output(Out::kGamma) : Value{}, nu = c.state(In::kNu);
  const Value row_rstd = attrs.is_scaled() ? c.output(Out::kRowRstd) : Value{};
  const Value dy = gradient_like_x(c);
  const Value d =
      c.graph.add(kPowerNormBackward,
                  {c.input(In::kX), c.input(In::kGain), c.output(Out::kRstd), c.output(Out::kRdx),
                   gamma, nu, dy, c.input(In::kMask), row_rstd, gradient_sums(c, dy)},
                  attrs);
  set_gradients(c, d);
  if (attrs.training) c.set_state(In::kNu, d.at(BackOut::kNextNu));
}

std::optional<double> kept(const Attrs& of) {
  const auto& attrs = of.as<PowerNormAttrs>();
  // The warm-up begins with the mean of the batches so far, which has nothing of the first value.
  return attrs.warmup > 0 ? std::nullopt : std::optional(attrs.alpha_f);
}

}  // namespace

const OpInfo kPowerNorm{
    .name = "power_norm",
    .inputs = {"x",
               "gain",
               "bias",
               "psi2",
               "nu",
               {"step", DType::kI32},
               {"mask", DType::kU8},
               {"squares", DType::kF64}},
    .output_names = {"y", "rstd", "rdx", "gamma", "next_psi2", "next_step", "contraction", "nu_max",
                     "row_rstd"},
    .attrs = PowerNormAttrs{},
    .infer = infer,
    .backward = backward,
    .gradient = GradientKind::kSurrogate,
    .norm =
        NormTraits{.groups = NormGroups::kColumns, .by_running_statistics = true, .kept = kept}};
const OpInfo kPowerNormBackward{.name = "power_norm_backward",
                                .inputs = {"x",
                                           "gain",
                                           "rstd",
                                           "rdx",
                                           "gamma",
                                           "nu",
                                           "dy",
                                           {"mask", DType::kU8},
                                           "row_rstd",
                                           {"sums", DType::kF64}},
                                .output_names = {"dx", "dgain", "dbias", "next_nu"},
                                .attrs = PowerNormBackwardAttrs{},
                                .infer = infer_backward,
                                .forward = &kPowerNorm,
                                .in_place = {{BackIn::kDy, BackOut::kDx}}};

namespace ops {

Value power_norm(Graph& g, Value x, const NormAffine& affine, const PowerNormState& state,
                 const PowerNormAttrs& attrs) {
  return g.add(
      kPowerNorm,
      {x, affine.gain, affine.bias, state.psi2, state.nu, state.step, state.mask, state.squares},
      attrs);
}

}  // namespace ops
}  // namespace keel
