// Layer norm takes a row at a time, in passes over data that stays in L1.
#include "src/ops/norm/layer_norm.h"

#include "backends/onednn/kernels/kernels.h"
#include "backends/onednn/kernels/norm/affine_rows.h"
#include "backends/onednn/kernels/norm/statistic.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/onednn/kernels/norm/layer_norm.cpp"
#include <hwy/foreach_target.h>

#include "backends/onednn/simd/affine_rows-inl.h"
#include "backends/onednn/simd/centred_rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace keel::onednn {
namespace HWY_NAMESPACE {
namespace {

using In = LayerNormInput;

// Writes y = (x - mean) * rstd * gain + bias and saves mean and rstd.
void forward(const Binding& b, const NormStatistic& statistic, const RowRange& range) {
  const RowAffine affine{b.inputs[In::kGain].as<float>(), b.inputs[In::kBias].as<float>()};
  with_elements(b.inputs[In::kX], [&]<class T>(T) HWY_ATTR {
    write_centred<T>(b, statistic, range,
                     [&](Floats xhat, auto part, std::size_t i)
                         KEEL_LOOP_BODY { return affine.apply(part, xhat, i); });
  });
}

// The Norm of affine_rows-inl.h.
struct LayerNormRows {
  using In = LayerNormBackwardInput;
  NormStatistic statistic;
  const float* gain;

  template <class T>
  RowGradient gradient(const Binding& b, std::size_t row, std::size_t width) const {
    const SavedRow<T> saved{
        b.inputs[In::kX].as<T>() + row * width, b.inputs[In::kDy].as<T>() + row * width,
        b.inputs[In::kMean].as<float>()[row], b.inputs[In::kRstd].as<float>()[row], width};
    const double count = variance_count(std::int64_t(width), statistic.unbiased);
    return row_gradient(saved, {gain, nullptr},
                        double(width) / count * slope_factor(statistic, saved.rstd));
  }
};

void backward(const Binding& b, const NormStatistic& statistic, const AffineBlock& block) {
  affine_block(b, LayerNormRows{statistic, b.inputs[LayerNormRows::In::kGain].as<float>()}, block);
}

void add_up(const Binding& b, const AffineRows& plan) { add_affine_sums(b, plan); }

// Writes dgain and dbias of wide rows. It runs before dx is written, perhaps over dy. The workspace
// holds, for each row, what xhat lacks with a float mean.
template <class T>
void add_up_wide_of(const Binding& b, const RowBlocks& blocks) {
  using In = LayerNormBackwardInput;
  float* const low = static_cast<float*>(b.workspace);
  const WideRows<T> in{b.inputs[In::kX].as<T>(),
                       b.inputs[In::kDy].as<T>(),
                       b.inputs[In::kMean].as<float>(),
                       b.inputs[In::kRstd].as<float>(),
                       low,
                       std::size_t(blocks.rows),
                       std::size_t(blocks.width)};
  blocks.run([&](std::size_t, const RowRange& range) HWY_ATTR {
    for (std::size_t row = range.first; row < range.last; ++row) low[row] = mean_xhat(in, row);
  });
  add_wide_sums(b, in);
}

void add_up_wide(const Binding& b, const RowBlocks& blocks) {
  with_elements(b.inputs[LayerNormBackwardInput::kX],
                [&]<class T>(T) HWY_ATTR { add_up_wide_of<T>(b, blocks); });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace keel::onednn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace keel::onednn {

HWY_EXPORT(forward);
HWY_EXPORT(backward);
HWY_EXPORT(add_up);
HWY_EXPORT(add_up_wide);

Prepared prepare_layer_norm(const NodeContext& context) {
  using In = LayerNormInput;
  const auto attrs = context.attrs<LayerNormAttrs>();
  const RowBlocks blocks =
      independent_row_blocks(row_sizes(context.input(In::kX).shape, attrs.axes));
  return kernel_of_rows(blocks, [=](const Binding& b, const RowRange& range) {
    HWY_DYNAMIC_DISPATCH(forward)(b, attrs.statistic(), range);
  });
}

Prepared prepare_layer_norm_backward(const NodeContext& context) {
  const auto attrs = context.attrs<LayerNormBackwardAttrs>();
  const RowSizes sizes = row_sizes(context.input(LayerNormBackwardInput::kX).shape, attrs.axes);
  const AffineRows plan(context, sizes);
  const auto run = [=](const Binding& b, const Neighbours& neighbours) {
    if (plan.is_wide) HWY_DYNAMIC_DISPATCH(add_up_wide)(b, plan.blocks);
    plan.run(neighbours, [&](const AffineBlock& block) {
      HWY_DYNAMIC_DISPATCH(backward)(b, attrs.statistic(), block);
    });
    if (!plan.is_wide) HWY_DYNAMIC_DISPATCH(add_up)(b, plan);
  };
  const std::int64_t of_wide = plan.blocks.rows * std::int64_t(sizeof(float));
  return plan.kernel(run, plan.is_wide ? of_wide : plan.sum_bytes());
}

}  // namespace keel::onednn
#endif
