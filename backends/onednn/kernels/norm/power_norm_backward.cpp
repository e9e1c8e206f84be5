// The backward of PowerNorm. All that dx needs is known beforehand: one pass over the tensors
// writes it and forms the sums of the parameters' gradients and of the next nu.
#include "backends/onednn/kernels/kernels.h"
#include "backends/onednn/kernels/norm/power_norm_plan.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/onednn/kernels/norm/power_norm_backward.cpp"
#include <hwy/foreach_target.h>

#include "backends/onednn/simd/power_columns-inl.h"

HWY_BEFORE_NAMESPACE();
namespace keel::onednn {
namespace HWY_NAMESPACE {
namespace {

// From the sums of all blocks: dgain, dbias and nu'.
void backward_statistics(const Binding& b, const PowerNormPlan& plan, const Slab& slab) {
  const auto kept = double(plan.columns.count(b.inputs[7].as<std::uint8_t>()));
  const double counted = plan.pad_stats ? double(plan.columns.blocks.sizes.count()) : kept;
  const WideDoubles share = WideDoubles::all(kept > 0 ? (1 - plan.alpha_b) / counted : 0);
  const WideDoubles one = WideDoubles::all(1), rest = WideDoubles::all(1 - plan.alpha_b);
  const float* gain = b.inputs[1].as<float>();
  for_lanes(slab.channels, [&](auto part, std::size_t i) KEEL_LOOP_BODY {
    const std::size_t c = slab.first + i;
    const auto sum = [&](std::size_t kind)
                         HWY_ATTR { return sum_of_blocks(plan.columns, b.workspace, kind, c); };
    if (b.outputs[1]) part.store(sum(1).floats(), b.outputs[1].as<float>() + c);
    if (b.outputs[2]) part.store(sum(0).floats(), b.outputs[2].as<float>() + c);
    if (!plan.training) return;
    const WideDoubles nu = WideDoubles::of(part.load(b.inputs[5].as<float>() + c));
    const WideDoubles gamma = WideDoubles::of(part.load(b.inputs[4].as<float>() + c));
    const WideDoubles scale = WideDoubles::of(gain ? part.load(gain + c) : splat(1));
    const WideDoubles lambda = sum(plan.pad_stats ? 3 : 1) * share * scale;
    part.store((nu * (one - rest * gamma) + lambda).floats(), b.outputs[3].as<float>() + c);
  });
}

const float* slope_of(const Binding& b, const PowerNormPlan& plan) {
  return plan.training ? b.inputs[5].as<float>() : nullptr;
}

void backward_part(const Binding& b, const PowerNormPlan& plan, std::size_t block,
                   const Slab& part) {
  const RowMask mask = b.inputs[7].as<std::uint8_t>();
  const UncentredGradient in{b.inputs[0].as<float>(), b.inputs[6].as<float>(),
                             b.inputs[2].as<float>()};
  const auto sum = [&](std::size_t kind) { return plan.sum(b, block, kind, part.first); };
  add_gradient_sums(part, in, mask, {sum(0), sum(1)});
  if (plan.pad_stats) add_gradient_sums(part, in, nullptr, {sum(2), sum(3)});
  write_backward(
      part, {in, b.inputs[3].as<float>(), slope_of(b, plan), b.inputs[1].as<float>(), b.outputs[0]},
      mask);
}

// The gradient of a scaled part. dz, by z, waits in L1 or L2 until its rows are complete; of a row
// too wide for that it waits in dx.
struct ScaledPart {
  const Binding& b;
  const PowerNormPlan& plan;
  const Slab& part;
  float* dz;
  std::size_t first;  // element of the tensor that dz begins with

  // Goes through the rows that the mask keeps; `sums` are of (channels).
  template <bool kWrites>
  void visit(RowMask mask, const GradientSums& sums) const {
    const Scales scales{b.inputs[8].as<float>(), plan.groups, part.stride / plan.groups};
    with_factors(scales, part, [&](const Slab& piece, const auto& factors) HWY_ATTR {
      const auto of_piece = [&](auto* channels) {
        return channels ? channels + piece.first : nullptr;
      };
      const StripPowerBackward<std::decay_t<decltype(factors)>, kWrites> columns{
          factors,
          b.inputs[0].as<float>(),
          b.inputs[6].as<float>(),
          of_piece(b.inputs[2].as<float>()),
          of_piece(b.inputs[3].as<float>()),
          of_piece(slope_of(b, plan)),
          of_piece(b.inputs[1].as<float>()),
          dz,
          first,
          {of_piece(sums.dy), of_piece(sums.dy_xhat)}};
      for_strips(piece, mask,
                 [&](const Strip& strip) HWY_ATTR { sum_strip(strip, piece.channels, columns); });
    });
  }
  void write(const ResultRows& dx) const {
    const RowMask mask = b.inputs[7].as<std::uint8_t>();
    for_left_out(part, mask,
                 [&](std::size_t at) { std::fill_n(dz + (at - first), part.channels, 0.0f); });
    scale_groups_backward({b.inputs[0].as<float>(), b.inputs[8].as<float>(), {dz, first}, dx},
                          plan.groups_of(part));
    clear_left_out(part, mask, dx.data);  // whatever x holds there
  }
};

void backward_scaled_part(const Binding& b, const PowerNormPlan& plan, std::size_t block,
                          const Slab& part) {
  HWY_ALIGN float room[kPartElements];
  const bool fits = part.rows * part.channels <= kPartElements;
  const TensorRef& dx = b.outputs[0];
  const ScaledPart scaled{b, plan, part, fits ? room : dx.as<float>(), fits ? part.offset : 0};
  const auto sum = [&](std::size_t kind) { return plan.sum(b, block, kind, 0); };
  if (plan.pad_stats) scaled.visit<false>(nullptr, {sum(2), sum(3)});
  scaled.visit<true>(b.inputs[7].as<std::uint8_t>(), {sum(0), sum(1)});
  scaled.write(fits ? ResultRows(dx, part.stride / plan.groups) : ResultRows(dx));
}

void backward(const Binding& b, const PowerNormPlan& plan) {
  const ColumnBlocks& blocks = plan.columns.blocks;
  blocks.run([&](std::size_t block, const Slab& slab) HWY_ATTR {
    plan.clear_sums(b, block, slab);
    for_row_parts(slab, [&](const Slab& part) HWY_ATTR {
      plan.is_scaled() ? backward_scaled_part(b, plan, block, part)
                       : backward_part(b, plan, block, part);
    });
  });
  blocks.run_channels([&](const Slab& slab) HWY_ATTR { backward_statistics(b, plan, slab); });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace keel::onednn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace keel::onednn {

HWY_EXPORT(backward);

Prepared prepare_power_norm_backward(const NodeContext& context) {
  const PowerNormPlan plan = power_norm_plan(context, 2, 2);
  return kernel_of(
      [=](const Binding& b) {
        const auto run = HWY_DYNAMIC_DISPATCH(backward);
        run(b, plan);
      },
      plan.columns.bytes());
}

}  // namespace keel::onednn
#endif
