#include "src/ops/norm/unified_norm.h"

#include <bit>

#include "src/ops/norm/columns.h"

namespace keel {
namespace {

using In = UnifiedNormInput;
using Out = UnifiedNormOutput;
using BackIn = UnifiedNormBackwardInput;
using BackOut = UnifiedNormGradient;
using Types = std::vector<TensorType>;

// `mask` is the place of the mask. Returns the type of one value a channel.
TensorType expect_unified(const InferContext& c, const UnifiedNormAttrs& attrs, int mask) {
  const ColumnSizes sizes = expect_columns(c, mask, attrs.eps);
  expect_in_unit_interval(c, "keep", attrs.keep);
  c.expect(attrs.clip >= 1, "clip", ">= 1", fmt::format("{}", attrs.clip));
  const bool is_power = attrs.m > 0 && std::has_single_bit(std::uint64_t(attrs.m));
  c.expect(is_power, "m", "a power of two", fmt::format("{}", attrs.m));
  return {wide_type(c), {sizes.channels}};
}

void expect_step(const InferContext& c, int step) {
  c.expect_shape(step, "step", {});
  c.expect_dtype(step, "step", DType::kI32);
}

Types infer(const InferContext& c) {
  const auto& attrs = c.attrs.as<UnifiedNormAttrs>();
  const TensorType statistic = expect_unified(c, attrs, In::kMask);
  const Shape ring{attrs.m, statistic.shape[0]};
  expect_affine(c, In::kGain, In::kBias, statistic.shape);
  c.expect_shape(In::kX2, "x2", ring);
  c.expect_shape(In::kGz, "gz", ring);
  c.expect_shape(In::kV, "v", statistic.shape);
  c.expect_shape(In::kNu, "nu", statistic.shape);
  expect_step(c, In::kStep);
  expect_statistics(c, In::kSquares, "squares", {square_rows(false), ring[1]}, attrs.training);
  return {wide_x(c),
          statistic,
          statistic,
          {statistic.dtype, {}},
          type_if(attrs.training, c.input(In::kX2)),
          type_if(attrs.training, statistic),
          type_if(attrs.training, c.input(In::kStep))};
}

Types infer_backward(const InferContext& c) {
  const auto& attrs = c.attrs.as<UnifiedNormBackwardAttrs>();
  const TensorType statistic = expect_unified(c, attrs, BackIn::kMask);
  if (c.has(BackIn::kGain)) c.expect_shape(BackIn::kGain, "gain", statistic.shape);
  c.expect_shape(BackIn::kRstd, "rstd", statistic.shape);
  c.expect_shape(BackIn::kRatio, "ratio", statistic.shape);
  c.expect_shape(BackIn::kSkips, "skips", {});
  c.expect_shape(BackIn::kGz, "gz", {attrs.m, statistic.shape[0]});
  c.expect_shape(BackIn::kNu, "nu", statistic.shape);
  expect_step(c, BackIn::kStep);
  expect_dy(c, BackIn::kDy);
  expect_sums(c, BackIn::kSums, "sums", {uncentred_sum_rows(false), statistic.shape[0]});
  return {wide_x(c), gradient_type(c, BackIn::kGain), type_if(attrs.wants_dbias, statistic),
          type_if(attrs.training, c.input(BackIn::kGz)), type_if(attrs.training, statistic)};
}

// The sums that the backward is given: absent unless the forward was given its squares.
Value gradient_sums(BackwardContext& c, Value dy) {
  if (!has_own_statistics(c, "unified_norm", kColumnSquares, In::kSquares, In::kMask)) return {};
  const Value sums = ops::uncentred_gradient_sums(
      c.graph, {c.input(In::kX), c.output(Out::kRstd), dy, c.input(In::kMask)});
  return sums_like_statistics(c, In::kSquares, sums);
}

void backward(BackwardContext& c) {
  const UnifiedNormBackwardAttrs attrs{c.attrs().as<UnifiedNormAttrs>(),
                                       c.input(In::kBias).valid()};
  const Value dy = gradient_like_x(c);
  const Value d =
      c.graph.add(kUnifiedNormBackward,
                  {c.input(In::kX), c.input(In::kGain), c.output(Out::kRstd), c.output(Out::kRatio),
                   c.output(Out::kSkips), c.state(In::kGz), c.state(In::kNu), c.input(In::kStep),
                   dy, c.input(In::kMask), gradient_sums(c, dy)},
                  attrs);
  set_gradients(c, d);
  if (!attrs.training) return;
  c.set_state(In::kGz, d.at(BackOut::kNextGz));
  c.set_state(In::kNu, d.at(BackOut::kNextNu));
}

}  // namespace

const OpInfo kUnifiedNorm{
    .name = "unified_norm",
    .inputs = {"x",
               "gain",
               "bias",
               "x2",
               "gz",
               "v",
               "nu",
               {"step", DType::kI32},
               {"mask", DType::kU8},
               {"squares", DType::kF64}},
    .output_names = {"y", "rstd", "ratio", "skips", "next_x2", "next_v", "next_step"},
    .attrs = UnifiedNormAttrs{},
    .infer = infer,
    .backward = backward,
    .gradient = GradientKind::kSurrogate,
    .norm = NormTraits{.groups = NormGroups::kColumns, .by_running_statistics = true},
    .in_place = {{In::kX2, Out::kNextX2}, {In::kV, Out::kNextV}}};
const OpInfo kUnifiedNormBackward{.name = "unified_norm_backward",
                                  .inputs = {"x",
                                             "gain",
                                             "rstd",
                                             "ratio",
                                             "skips",
                                             "gz",
                                             "nu",
                                             {"step", DType::kI32},
                                             "dy",
                                             {"mask", DType::kU8},
                                             {"sums", DType::kF64}},
                                  .output_names = {"dx", "dgain", "dbias", "next_gz", "next_nu"},
                                  .attrs = UnifiedNormBackwardAttrs{},
                                  .infer = infer_backward,
                                  .forward = &kUnifiedNorm,
                                  .in_place = {{BackIn::kDy, BackOut::kDx},
                                               {BackIn::kGz, BackOut::kNextGz},
                                               {BackIn::kNu, BackOut::kNextNu}}};

namespace ops {

Value unified_norm(Graph& g, Value x, const NormAffine& affine, const UnifiedNormState& state,
                   const UnifiedNormAttrs& attrs) {
  return g.add(kUnifiedNorm,
               {x, affine.gain, affine.bias, state.x2, state.gz, state.v, state.nu, state.step,
                state.mask, state.squares},
               attrs);
}

}  // namespace ops
}  // namespace keel
