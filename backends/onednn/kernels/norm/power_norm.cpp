// PowerNorm. Behind the warm-up the forward knows rpsi beforehand, as the backward always knows all
// that dx needs: one pass over the tensor writes the result and forms the sums of the next state.
#include "src/ops/norm/power_norm.h"

#include "backends/onednn/column_plan.h"
#include "backends/onednn/kernels/kernels.h"

#ifndef KEEL_POWER_NORM_PLAN  // this file is compiled once per instruction set
#define KEEL_POWER_NORM_PLAN
namespace keel::onednn {
namespace {

// What the kernels need of the attributes, and the sums: of the kept rows, then perhaps of all.
struct PowerNormPlan {
  ColumnPlan columns;
  double eps, alpha_f, alpha_b;
  std::int64_t warmup;
  bool is_release, pad_stats, training;
};

// What the forward of one step knows beforehand.
struct Step {
  bool uses_batch;     // and there is a row that counts
  std::int64_t t;      // the number of this training forward
  bool is_warming_up;  // rpsi comes from this batch, not from those before it
};

Step step_of(const Binding& b, const PowerNormPlan& plan) {
  const std::int32_t* count = b.inputs[5].as<std::int32_t>();
  const bool uses_batch = plan.training && plan.columns.count(b.inputs[6].as<std::uint8_t>()) > 0;
  const std::int64_t t = count ? std::int64_t{*count} + 1 : 1;
  return {uses_batch, t, uses_batch && t <= plan.warmup};
}

}  // namespace
}  // namespace keel::onednn
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/onednn/kernels/norm/power_norm.cpp"
#include <hwy/foreach_target.h>

#include "backends/onednn/simd/uncentred_columns-inl.h"

HWY_BEFORE_NAMESPACE();
namespace keel::onednn {
namespace HWY_NAMESPACE {
namespace {

Floats reciprocal_root(const WideDoubles& v, double eps) {
  return reciprocal_sqrt(v + WideDoubles::all(eps));
}

// NaN if one is NaN.
float largest_magnitude(const float* p, std::size_t n) {
  Floats largest = zero();
  for_lanes(n, [&](auto part, std::size_t i)
                   KEEL_LOOP_BODY { largest = larger(largest, hn::Abs(part.load(p + i))); });
  HWY_ALIGN float lanes[kLanes];
  Whole{}.store(largest, lanes);
  return max_of(lanes, kLanes);
}

// The running quadratic mean alone: evaluation, or a batch without rows.
void running_statistics(const Binding& b, const PowerNormPlan& plan, const Slab& slab) {
  for_lanes(slab.channels, [&](auto part, std::size_t i) KEEL_LOOP_BODY {
    const std::size_t c = slab.first + i;
    const Floats psi2 = part.load(b.inputs[3].as<float>() + c);
    const Floats rpsi = reciprocal_root(WideDoubles::of(psi2), plan.eps);
    for (std::size_t port : {1, 2}) part.store(rpsi, b.outputs[port].as<float>() + c);
    if (!plan.training) return;
    part.store(zero(), b.outputs[3].as<float>() + c);
    part.store(psi2, b.outputs[4].as<float>() + c);
  });
}

// From the sums of squares of all blocks: rpsi, rdx, Gamma and psi2'.
void batch_statistics(const Binding& b, const PowerNormPlan& plan, const Step& step,
                      const Slab& slab) {
  const auto count = double(plan.columns.count(b.inputs[6].as<std::uint8_t>()));
  const auto all = double(plan.columns.blocks.sizes.count());
  const WideDoubles share = WideDoubles::all(1 / count), share_of_all = WideDoubles::all(1 / all);
  const WideDoubles keep = WideDoubles::all(plan.alpha_f);
  const WideDoubles rest = WideDoubles::all(1 - plan.alpha_f);
  const WideDoubles seen = WideDoubles::all(double(step.t - 1) / double(step.t));
  const WideDoubles now = WideDoubles::all(1 / double(step.t));
  const bool is_cumulative = step.t < plan.warmup, is_averaged = plan.is_release || !is_cumulative;
  for_lanes(slab.channels, [&](auto part, std::size_t i) KEEL_LOOP_BODY {
    const std::size_t c = slab.first + i;
    WideDoubles psi2 = WideDoubles::of(part.load(b.inputs[3].as<float>() + c));
    const WideDoubles batch = sum_of_blocks(plan.columns, b.workspace, 0, c) * share;
    const WideDoubles counted =
        plan.pad_stats ? sum_of_blocks(plan.columns, b.workspace, 1, c) * share_of_all : batch;
    const Floats rpsi = reciprocal_root(step.is_warming_up ? batch : psi2, plan.eps);
    const Floats rdx = plan.is_release ? reciprocal_root(batch, plan.eps) : rpsi;
    const WideDoubles factor = WideDoubles::of(rpsi);
    if (is_cumulative) psi2 = psi2 * seen + batch * now;
    if (is_averaged) psi2 = psi2 * keep + batch * rest;
    part.store(rpsi, b.outputs[1].as<float>() + c);
    part.store(rdx, b.outputs[2].as<float>() + c);
    part.store((counted * factor * factor).floats(), b.outputs[3].as<float>() + c);
    part.store(psi2.floats(), b.outputs[4].as<float>() + c);
  });
}

// The sums of squares of a block's slab: of the kept rows, then perhaps of all.
void add_batch_squares(const Binding& b, const PowerNormPlan& plan, std::size_t block,
                       const Slab& slab) {
  const float* x = b.inputs[0].as<float>();
  const auto sum = [&](std::size_t kind) {
    return plan.columns.sum(b.workspace, block, kind) + slab.first;
  };
  add_squares(slab, x, b.inputs[6].as<std::uint8_t>(), sum(0));
  if (plan.pad_stats) add_squares(slab, x, nullptr, sum(1));
}

void clear_sums(const Binding& b, const PowerNormPlan& plan, std::size_t block, const Slab& slab) {
  for (std::size_t kind = 0; kind < plan.columns.sums; ++kind) {
    std::fill_n(plan.columns.sum(b.workspace, block, kind) + slab.first, slab.channels, 0.0);
  }
}

void write(const Binding& b, const Slab& slab) {
  write_forward(slab,
                {b.inputs[0].as<float>(), b.outputs[1].as<float>(), b.inputs[1].as<float>(),
                 b.inputs[2].as<float>(), b.outputs[0]},
                b.inputs[6].as<std::uint8_t>());
}

// y of a batch whose rpsi is known, and the sums of its squares on the way.
void forward_in_one_pass(const Binding& b, const PowerNormPlan& plan, const Step& step) {
  const ColumnBlocks& blocks = plan.columns.blocks;
  blocks.run_channels([&](const Slab& slab) HWY_ATTR { running_statistics(b, plan, slab); });
  blocks.run([&](std::size_t block, const Slab& slab) HWY_ATTR {
    clear_sums(b, plan, block, slab);
    for_row_parts(slab, [&](const Slab& part) HWY_ATTR {
      if (step.uses_batch) add_batch_squares(b, plan, block, part);
      write(b, part);
    });
  });
  if (!step.uses_batch) return;
  blocks.run_channels([&](const Slab& slab) HWY_ATTR { batch_statistics(b, plan, step, slab); });
}

void forward_in_two_passes(const Binding& b, const PowerNormPlan& plan, const Step& step) {
  run_columns(
      plan.columns.blocks,
      [&](std::size_t block, const Slab& slab) HWY_ATTR {
        clear_sums(b, plan, block, slab);
        add_batch_squares(b, plan, block, slab);
      },
      [&](const Slab& slab) HWY_ATTR { batch_statistics(b, plan, step, slab); },
      [&](const Slab& slab) HWY_ATTR { write(b, slab); });
}

void forward(const Binding& b, const PowerNormPlan& plan) {
  const Step step = step_of(b, plan);
  step.is_warming_up ? forward_in_two_passes(b, plan, step) : forward_in_one_pass(b, plan, step);
  if (!plan.training) return;
  const std::int32_t* count = b.inputs[5].as<std::int32_t>();
  if (count) *b.outputs[5].as<std::int32_t>() = *count + (step.uses_batch ? 1 : 0);
  const auto channels = std::size_t(plan.columns.blocks.sizes.channels);
  const double gamma = largest_magnitude(b.outputs[3].as<float>(), channels);
  *b.outputs[6].as<float>() = float((1 - plan.alpha_b) * gamma);
  *b.outputs[7].as<float>() = largest_magnitude(b.inputs[4].as<float>(), channels);
}

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

void backward(const Binding& b, const PowerNormPlan& plan) {
  const RowMask mask = b.inputs[7].as<std::uint8_t>();
  const UncentredGradient in{b.inputs[0].as<float>(), b.inputs[6].as<float>(),
                             b.inputs[2].as<float>()};
  const float* slope = plan.training ? b.inputs[5].as<float>() : nullptr;
  const UncentredBackward write{in, b.inputs[3].as<float>(), slope, b.inputs[1].as<float>(),
                                b.outputs[0]};
  const ColumnBlocks& blocks = plan.columns.blocks;
  blocks.run([&](std::size_t block, const Slab& slab) HWY_ATTR {
    const auto sum = [&](std::size_t kind) {
      return plan.columns.sum(b.workspace, block, kind) + slab.first;
    };
    clear_sums(b, plan, block, slab);
    for_row_parts(slab, [&](const Slab& part) HWY_ATTR {
      add_gradient_sums(part, in, mask, {sum(0), sum(1)});
      if (plan.pad_stats) add_gradient_sums(part, in, nullptr, {sum(2), sum(3)});
      write_backward(part, write, mask);
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

HWY_EXPORT(forward);
HWY_EXPORT(backward);

namespace {

// `sums` kinds of sums for the kept rows; as many again for all rows with pad_stats. `tensors` are
// read in both passes.
PowerNormPlan make_plan(const NodeContext& context, std::int64_t tensors, std::int64_t sums) {
  const auto attrs = context.attrs<PowerNormAttrs>();
  if (attrs.pad_stats) sums *= 2;
  const ColumnBlocks blocks = column_blocks(column_sizes(context.input(0).shape), tensors, sums);
  return {{blocks, std::size_t(sums), 0},
          attrs.eps,
          attrs.alpha_f,
          attrs.alpha_b,
          attrs.warmup,
          attrs.is_release(),
          attrs.pad_stats,
          attrs.training};
}

}  // namespace

Prepared prepare_power_norm(const NodeContext& context) {
  const PowerNormPlan plan = make_plan(context, 1, 1);
  return kernel_of(
      [=](const Binding& b) {
        const auto run = HWY_DYNAMIC_DISPATCH(forward);
        run(b, plan);
      },
      plan.columns.bytes());
}

Prepared prepare_power_norm_backward(const NodeContext& context) {
  const PowerNormPlan plan = make_plan(context, 2, 2);
  return kernel_of(
      [=](const Binding& b) {
        const auto run = HWY_DYNAMIC_DISPATCH(backward);
        run(b, plan);
      },
      plan.columns.bytes());
}

}  // namespace keel::onednn
#endif
