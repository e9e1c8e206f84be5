// The backward of PowerNorm. All inputs of dx are known in advance: one pass over the tensors
// writes dx and forms the sums for the gradients of the parameters and for the next nu.
#include "backends/onednn/kernels/kernels.h"
#include "backends/onednn/kernels/norm/power_norm_plan.h"

namespace keel::onednn {
namespace {

using BackIn = PowerNormBackwardInput;
using BackOut = PowerNormGradient;

}  // namespace
}  // namespace keel::onednn

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/onednn/kernels/norm/power_norm_backward.cpp"
#include <hwy/foreach_target.h>

#include "backends/onednn/simd/scaled_power-inl.h"

HWY_BEFORE_NAMESPACE();
namespace keel::onednn {
namespace HWY_NAMESPACE {
namespace {

// Computes dgain, dbias and nu' from the sums of all blocks.
void backward_statistics(const Binding& b, const PowerNormPlan& plan, const Tile& tile) {
  const ColumnCounts counts =
      plan.columns.counts(b.inputs[BackIn::kMask].as<std::uint8_t>(), b.inputs[BackIn::kSums]);
  const auto kept = double(counts.kept), counted = plan.pad_stats ? double(counts.all) : kept;
  const WideDoubles share = WideDoubles::all(kept > 0 ? (1 - plan.alpha_b) / counted : 0);
  const WideDoubles one = WideDoubles::all(1), rest = WideDoubles::all(1 - plan.alpha_b);
  const float* gain = b.inputs[BackIn::kGain].as<float>();
  for_lanes(tile.channels, [&](auto part, std::size_t i) KEEL_LOOP_BODY {
    const std::size_t c = tile.first + i;
    const auto sum = [&](std::size_t kind)
                         HWY_ATTR { return sum_of_blocks(plan.columns, b.workspace, kind, c); };
    if (b.outputs[BackOut::kDgain]) {
      part.store(sum(1).floats(), b.outputs[BackOut::kDgain].as<float>() + c);
    }
    if (b.outputs[BackOut::kDbias]) {
      part.store(sum(0).floats(), b.outputs[BackOut::kDbias].as<float>() + c);
    }
    if (!plan.training) return;
    const WideDoubles nu = WideDoubles::of(part.load(b.inputs[BackIn::kNu].as<float>() + c));
    const WideDoubles gamma = WideDoubles::of(part.load(b.inputs[BackIn::kGamma].as<float>() + c));
    const WideDoubles scale = WideDoubles::of(gain ? part.load(gain + c) : splat(1));
    const WideDoubles lambda = sum(plan.pad_stats ? 3 : 1) * share * scale;
    part.store((nu * (one - rest * gamma) + lambda).floats(),
               b.outputs[BackOut::kNextNu].as<float>() + c);
  });
}

const float* slope_of(const Binding& b, const PowerNormPlan& plan) {
  return plan.training ? b.inputs[BackIn::kNu].as<float>() : nullptr;
}

// Takes the sums that the node was given.
void take_given(const Binding& b, const PowerNormPlan& plan, std::size_t block, const Tile& tile) {
  const TensorRef& given = b.inputs[BackIn::kSums];
  take_gradients(plan.columns, {b.workspace, block, 0}, given, tile);
  if (block > 0 || !plan.pad_stats) return;
  take_row(plan.columns, given, UncentredSumRow::kAllDyXhat, plan.sum(b, 0, 3, 0), tile);
}

template <class T>
void backward_part(const Binding& b, const PowerNormPlan& plan, std::size_t block,
                   const Tile& part) {
  const RowMask mask = b.inputs[BackIn::kMask].as<std::uint8_t>();
  const UncentredGradient<T> in{b.inputs[BackIn::kX].as<T>(), b.inputs[BackIn::kDy].as<T>(),
                                b.inputs[BackIn::kRstd].as<float>()};
  const auto sum = [&](std::size_t kind) { return plan.sum(b, block, kind, part.first); };
  if (!plan.columns.is_given) {
    add_gradient_sums(part, in, mask, {sum(0), sum(1)});
    if (plan.pad_stats) add_gradient_sums(part, in, nullptr, {sum(2), sum(3)});
  }
  write_backward(
      part,
      UncentredBackward<T>{in, b.inputs[BackIn::kRdx].as<float>(), slope_of(b, plan),
                           b.inputs[BackIn::kGain].as<float>(), ResultRows(b, part.run_length())},
      mask);
}

// Some rows of a block, with a scaling in front.
template <class T>
struct ScaledPart {
  const Binding& b;
  const PowerNormPlan& plan;
  std::size_t block;
  const Tile& part;

  void run() const {
    const RowMask mask = b.inputs[BackIn::kMask].as<std::uint8_t>();
    if (plan.pad_stats) visit<false>(nullptr, 2);  // first: dx may be dy
    visit<true>(mask, 0);
    clear_left_out(part, mask, ResultRows(b, part.channels / plan.groups));
  }

 private:
  // Goes through the rows that the mask keeps, for the sums `kind` and the one after it.
  template <bool kWrites>
  void visit(RowMask mask, std::size_t kind) const {
    const RowGroups sizes{plan.groups, part.channels / plan.groups};
    const ScaledBackward<T> in{b.inputs[BackIn::kX].as<T>(),
                               b.inputs[BackIn::kDy].as<T>(),
                               b.inputs[BackIn::kRowRstd].as<float>(),
                               b.inputs[BackIn::kRstd].as<float>(),
                               b.inputs[BackIn::kRdx].as<float>(),
                               {slope_of(b, plan), 0},
                               {b.inputs[BackIn::kGain].as<float>(), 1},
                               ResultRows(b, sizes.width)};
    float* const runs[] = {plan.run(b, block), plan.run(b, block) + plan.columns.stride()};
    for_strips(part, mask, [&](const Strip& strip) HWY_ATTR {
      for (float* run : runs) std::fill_n(run, part.channels, 0.0f);
      for_groups(strip, part.stride, sizes,
                 [&](const auto& group) HWY_ATTR { visit<kWrites>(group, in, runs); });
      for (std::size_t k : {0, 1}) {
        double* const totals = plan.sum(b, block, kind + k, 0);
        for_lanes(part.channels, [&](auto lanes, std::size_t c) KEEL_LOOP_BODY {
          add_to(totals + c, WideDoubles::of(lanes.load(runs[k] + c)));
        });
      }
    });
  }
  // dz waits in L1; that of a group too wide for it waits in the workspace.
  template <bool kWrites, std::size_t kRows>
  void visit(const Group<kRows>& group, const ScaledBackward<T>& in,
             float* const (&runs)[2]) const {
    HWY_ALIGN float room[kGroupRoom];
    float* dz[kRows];
    for (std::size_t r = 0; r < kRows; ++r) {
      const bool fits = kRows * group.width <= kGroupRoom;
      dz[r] = fits ? room + r * group.width : plan.wide_room(b, block);
    }
    ChainedSum products[kRows];
    visit_group<kWrites>(group, in, runs, dz, products);
    if (!kWrites) return;
    for (std::size_t r = 0; r < kRows; ++r) {
      write_group(group, r, in, dz[r], products[r].total());
    }
  }
};

void backward(const Binding& b, const PowerNormPlan& plan) {
  const ColumnBlocks& blocks = plan.columns.blocks;
  blocks.run([&](std::size_t block, const Tile& tile) HWY_ATTR {
    plan.columns.is_given ? take_given(b, plan, block, tile) : plan.clear_sums(b, block, tile);
    with_elements(b.inputs[BackIn::kX], [&]<class T>(T) HWY_ATTR {
      for_row_parts(tile, [&](const Tile& part) HWY_ATTR {
        plan.is_scaled() ? ScaledPart<T>{b, plan, block, part}.run()
                         : backward_part<T>(b, plan, block, part);
      });
    });
  });
  blocks.run_channels([&](const Tile& tile) HWY_ATTR { backward_statistics(b, plan, tile); });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace keel::onednn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace keel::onednn {

HWY_EXPORT(backward);

Prepared prepare_power_norm_backward(const NodeContext& context) {
  PowerNormPlan plan = power_norm_plan(context.input(BackIn::kX).shape,
                                       context.attrs<PowerNormBackwardAttrs>(), 2, 2);
  plan.columns.is_given = context.has(BackIn::kSums);
  if (plan.is_wide()) plan.columns.sums += 1;  // the blocks stay those of only the sums
  return kernel_of(
      [=](const Binding& b) {
        const auto run = HWY_DYNAMIC_DISPATCH(backward);
        run(b, plan);
      },
      plan.columns.bytes());
}

}  // namespace keel::onednn
#endif
