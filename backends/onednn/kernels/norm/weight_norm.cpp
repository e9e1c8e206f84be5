// Weight normalization sees units as the channels of a tensor (1, out, in) or (in, out, 1) and
// divides them by the roots of their sums of squares.
#include "src/ops/norm/weight_norm.h"

#include "backends/onednn/kernels/kernels.h"

namespace keel::onednn {
namespace {

using In = WeightNormInput;
using Out = WeightNormOutput;
using BackIn = WeightNormBackwardInput;
using BackOut = WeightNormGradient;

}  // namespace
}  // namespace keel::onednn

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/onednn/kernels/norm/weight_norm.cpp"
#include <hwy/foreach_target.h>

#include "backends/onednn/simd/uncentred_columns-inl.h"

HWY_BEFORE_NAMESPACE();
namespace keel::onednn {
namespace HWY_NAMESPACE {
namespace {

// w = v * rstd * g
void forward(const Binding& b, const ColumnPlan& plan, double eps_inside) {
  const float* v = b.inputs[In::kV].as<float>();
  float* rstd = b.outputs[Out::kRstd].as<float>();
  const UncentredForward<float> in{v, rstd, b.inputs[In::kG].as<float>(), nullptr,
                                   ResultRows(b, plan.blocks.run_length())};
  run_columns(
      plan.blocks,
      [&](std::size_t block, const Tile& tile) HWY_ATTR {
        tile_squares(tile, v, nullptr, plan.sum(b.workspace, block, 0) + tile.first);
      },
      [&](const Tile& tile) HWY_ATTR {
        const WideDoubles one = WideDoubles::all(1), eps = WideDoubles::all(eps_inside);
        for_lanes(tile.channels, [&](auto part, std::size_t i) KEEL_LOOP_BODY {
          const WideDoubles squares = sum_of_blocks(plan, b.workspace, 0, tile.first + i);
          part.store((one / (squares + eps).sqrt()).floats(), rstd + tile.first + i);
        });
      },
      [&](const Tile& tile) HWY_ATTR { write_forward(tile, in, nullptr); });
}

// dg = sum of dw * u;   dv = g * rstd * (dw - u * dg);   u = v * rstd
void backward(const Binding& b, const ColumnPlan& plan) {
  const float *g = b.inputs[BackIn::kG].as<float>(), *rstd = b.inputs[BackIn::kRstd].as<float>();
  float *dg = b.outputs[BackOut::kDg].as<float>(), *scale = plan.constant(b.workspace, 0);
  const UncentredGradient<float> in{b.inputs[BackIn::kV].as<float>(),
                                    b.inputs[BackIn::kDw].as<float>(), rstd};
  const UncentredBackward<float> write{in, scale, dg, nullptr,
                                       ResultRows(b, plan.blocks.run_length())};
  run_columns(
      plan.blocks,
      [&](std::size_t block, const Tile& tile) HWY_ATTR {
        tile_gradient_sums(tile, in, nullptr,
                           {plan.sum(b.workspace, block, 0) + tile.first,
                            plan.sum(b.workspace, block, 1) + tile.first});
      },
      [&](const Tile& tile) HWY_ATTR {
        for_lanes(tile.channels, [&](auto part, std::size_t i) KEEL_LOOP_BODY {
          const std::size_t c = tile.first + i;
          part.store(sum_of_blocks(plan, b.workspace, 1, c).floats(), dg + c);
          part.store(hn::Mul(part.load(g + c), part.load(rstd + c)), scale + c);
        });
      },
      [&](const Tile& tile) HWY_ATTR { write_backward(tile, write, nullptr); });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace keel::onednn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace keel::onednn {

HWY_EXPORT(forward);
HWY_EXPORT(backward);

Prepared prepare_weight_norm(const NodeContext& context) {
  const auto attrs = context.attrs<WeightNormAttrs>();
  const ColumnSizes sizes = weight_sizes(context.input(In::kV).shape, attrs);
  const ColumnPlan plan{column_blocks(sizes, 1, 1), 1, 0};
  return kernel_of(
      [=](const Binding& b) {
        HWY_DYNAMIC_DISPATCH(forward)
        (b, plan, attrs.eps);
      },
      plan.bytes());
}

Prepared prepare_weight_norm_backward(const NodeContext& context) {
  const ColumnSizes sizes =
      weight_sizes(context.input(BackIn::kV).shape, context.attrs<WeightNormAttrs>());
  const ColumnPlan plan{column_blocks(sizes, 2, 2), 2, 1};
  return kernel_of(
      [=](const Binding& b) {
        HWY_DYNAMIC_DISPATCH(backward)
        (b, plan);
      },
      plan.bytes());
}

}  // namespace keel::onednn
#endif
