// The forward of PowerNorm. After the warm-up rstd is known in advance: one pass over the tensor
// writes y and forms the sums for the next state, also with a preceding scaling.
#include "src/ops/norm/power_norm.h"

#include "backends/onednn/kernels/kernels.h"
#include "backends/onednn/kernels/norm/power_norm_plan.h"

#ifndef KEEL_POWER_NORM_STEP  // this file is compiled once per instruction set
#define KEEL_POWER_NORM_STEP
namespace keel::onednn {
namespace {

using In = PowerNormInput;
using Out = PowerNormOutput;

ColumnCounts counts_of(const Binding& b, const PowerNormPlan& plan) {
  return plan.columns.counts(b.inputs[In::kMask].as<std::uint8_t>(), b.inputs[In::kSquares]);
}

// The facts that the forward of one step knows beforehand.
struct Step {
  bool uses_batch;     // it trains, and there is a row that counts
  std::int64_t t;      // the number of this training forward
  bool is_warming_up;  // rstd comes from this batch, not from those before it
};

Step step_of(const Binding& b, const PowerNormPlan& plan) {
  const std::int32_t* count = b.inputs[In::kStep].as<std::int32_t>();
  const bool uses_batch = plan.training && counts_of(b, plan).kept > 0;
  const std::int64_t t = count ? std::int64_t{*count} + 1 : 1;
  return {uses_batch, t, uses_batch && t <= plan.warmup};
}

}  // namespace
}  // namespace keel::onednn
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/onednn/kernels/norm/power_norm.cpp"
#include <hwy/foreach_target.h>

#include "backends/onednn/simd/scaled_power-inl.h"

HWY_BEFORE_NAMESPACE();
namespace keel::onednn {
namespace HWY_NAMESPACE {
namespace {

Floats reciprocal_root(const WideDoubles& v, double eps) {
  return reciprocal_sqrt(v + WideDoubles::all(eps));
}

// The largest |p[i]| of n elements, or NaN if one of them is NaN.
float largest_magnitude(const float* p, std::size_t n) {
  Floats largest = zero();
  for_lanes(n, [&](auto part, std::size_t i)
                   KEEL_LOOP_BODY { largest = larger(largest, hn::Abs(part.load(p + i))); });
  HWY_ALIGN float lanes[kLanes];
  Whole{}.store(largest, lanes);
  return max_of(lanes, kLanes);
}

// In evaluation, and for a batch without rows, all follows from the running quadratic mean.
void running_statistics(const Binding& b, const PowerNormPlan& plan, const Tile& tile) {
  for_lanes(tile.channels, [&](auto part, std::size_t i) KEEL_LOOP_BODY {
    const std::size_t c = tile.first + i;
    const Floats psi2 = part.load(b.inputs[In::kPsi2].as<float>() + c);
    const Floats rstd = reciprocal_root(WideDoubles::of(psi2), plan.eps);
    for (Out::Place place : {Out::kRstd, Out::kRdx}) {
      part.store(rstd, b.outputs[place].as<float>() + c);
    }
    if (!plan.training) return;
    part.store(zero(), b.outputs[Out::kGamma].as<float>() + c);
    part.store(psi2, b.outputs[Out::kNextPsi2].as<float>() + c);
  });
}

// Computes rstd, rdx, Gamma and psi2' from the sums of squares of all blocks.
void batch_statistics(const Binding& b, const PowerNormPlan& plan, const Step& step,
                      const Tile& tile) {
  const ColumnCounts counts = counts_of(b, plan);
  const WideDoubles share = WideDoubles::all(1 / double(counts.kept));
  const WideDoubles share_of_all = WideDoubles::all(1 / double(counts.all));
  const WideDoubles keep = WideDoubles::all(plan.alpha_f);
  const WideDoubles rest = WideDoubles::all(1 - plan.alpha_f);
  const WideDoubles seen = WideDoubles::all(double(step.t - 1) / double(step.t));
  const WideDoubles now = WideDoubles::all(1 / double(step.t));
  const bool is_cumulative = step.t < plan.warmup, is_averaged = plan.is_release || !is_cumulative;
  for_lanes(tile.channels, [&](auto part, std::size_t i) KEEL_LOOP_BODY {
    const std::size_t c = tile.first + i;
    WideDoubles psi2 = WideDoubles::of(part.load(b.inputs[In::kPsi2].as<float>() + c));
    const WideDoubles batch = sum_of_blocks(plan.columns, b.workspace, 0, c) * share;
    const WideDoubles counted =
        plan.pad_stats ? sum_of_blocks(plan.columns, b.workspace, 1, c) * share_of_all : batch;
    const Floats rstd = reciprocal_root(step.is_warming_up ? batch : psi2, plan.eps);
    const Floats rdx = plan.is_release ? reciprocal_root(batch, plan.eps) : rstd;
    const WideDoubles factor = WideDoubles::of(rstd);
    if (is_cumulative) psi2 = psi2 * seen + batch * now;
    if (is_averaged) psi2 = psi2 * keep + batch * rest;
    part.store(rstd, b.outputs[Out::kRstd].as<float>() + c);
    part.store(rdx, b.outputs[Out::kRdx].as<float>() + c);
    part.store((counted * factor * factor).floats(), b.outputs[Out::kGamma].as<float>() + c);
    part.store(psi2.floats(), b.outputs[Out::kNextPsi2].as<float>() + c);
  });
}

// How sums of squares are formed, of the kept rows and perhaps of all, and how y is written, where
// there is no scaling in front.
template <class T>
struct PlainRows {
  const Binding& b;
  const PowerNormPlan& plan;

  void sum(std::size_t block, const Tile& part) const {
    const T* x = b.inputs[In::kX].as<T>();
    add_squares(part, x, b.inputs[In::kMask].as<std::uint8_t>(), plan.sum(b, block, 0, part.first));
    if (plan.pad_stats) add_squares(part, x, nullptr, plan.sum(b, block, 1, part.first));
  }
  void write(const Tile& tile) const {
    write_forward(
        tile,
        UncentredForward<T>{b.inputs[In::kX].as<T>(), b.outputs[Out::kRstd].as<float>(),
                            b.inputs[In::kGain].as<float>(), b.inputs[In::kBias].as<float>(),
                            ResultRows(b, tile.run_length())},
        b.inputs[In::kMask].as<std::uint8_t>());
  }
  void write_alone(std::size_t, const Tile& part) const { write(part); }
  void sum_and_write(std::size_t block, const Tile& part) const {
    sum(block, part);
    write(part);
  }
};

// How the same is done with z = x * row_rstd for x, part by part.
template <class T>
struct ScaledRows {
  const Binding& b;
  const PowerNormPlan& plan;

  void sum(std::size_t block, const Tile& part) const {
    visit<kScale>(block, part, mask(), plan.sum(b, block, 0, 0));
    sum_all(block, part);
  }
  void write(const Tile& tile) const {
    const ColumnBlocks& blocks = plan.columns.blocks;
    const std::size_t block = tile.offset / tile.stride / std::size_t(blocks.block);
    for_row_parts(tile,
                  [&](const Tile& part) HWY_ATTR { visit<kWrite>(block, part, mask(), nullptr); });
    clear_left_out(tile, mask(), rows());
  }
  // Forms no sums. The scales of rows left out are written too, for the backward reads them.
  void write_alone(std::size_t block, const Tile& part) const {
    visit<kScale | kWrite>(block, part, mask(), nullptr);
    scale_left_out(part);
    clear_left_out(part, mask(), rows());
  }
  void sum_and_write(std::size_t block, const Tile& part) const {
    visit<kScale | kWrite>(block, part, mask(), plan.sum(b, block, 0, 0));
    sum_all(block, part);
    clear_left_out(part, mask(), rows());
  }

 private:
  enum : int { kScale = 1, kWrite = 2 };

  RowMask mask() const { return b.inputs[In::kMask].as<std::uint8_t>(); }
  ResultRows rows() const {
    return ResultRows(b, std::size_t(plan.columns.blocks.sizes.channels) / plan.groups);
  }
  // Forms the sums of all rows with pad_stats. In any case it writes the scales of those left out.
  void sum_all(std::size_t block, const Tile& part) const {
    plan.pad_stats ? visit<kScale>(block, part, nullptr, plan.sum(b, block, 1, 0))
                   : scale_left_out(part);
  }
  void scale_left_out(const Tile& part) const {
    const std::size_t width = part.channels / plan.groups;
    for_left_out(part, mask(), [&](std::size_t at) HWY_ATTR {
      for (std::size_t k = 0; k < plan.groups; ++k, at += width) {
        b.outputs[Out::kRowRstd].as<float>()[at / width] =
            scale_of_group(b.inputs[In::kX].as<T>() + at, width, plan.scaling_eps);
      }
    });
  }
  // Goes through the rows that the mask keeps; adds their squares to totals (channels) unless it is
  // null.
  template <int kDo>
  void visit(std::size_t block, const Tile& part, RowMask mask, double* totals) const {
    const RowGroups sizes{plan.groups, part.channels / plan.groups};
    const ScaledForward<T> in{b.inputs[In::kX].as<T>(),
                              b.outputs[Out::kRowRstd].as<float>(),
                              b.outputs[Out::kRstd].as<float>(),
                              {b.inputs[In::kGain].as<float>(), 1},
                              {b.inputs[In::kBias].as<float>(), 0},
                              rows()};
    float* const squares = plan.run(b, block);
    for_strips(part, mask, [&](const Strip& strip) HWY_ATTR {
      std::fill_n(squares, part.channels, 0.0f);
      for_groups(strip, part.stride, sizes, [&](const auto& group) HWY_ATTR {
        if ((kDo & kWrite) != 0) prefetch(group, in.y);
        if ((kDo & kScale) != 0) save_scales(group, in.x);
        visit_group<(kDo & kWrite) != 0>(group, in, squares);
      });
      if (totals != nullptr)
        add_squares(ScaledStrip<T>{strip, part.stride, sizes, in}, squares, totals);
    });
  }
  template <std::size_t kRows>
  void save_scales(const Group<kRows>& group, const T* x) const {
    for (std::size_t r = 0; r < kRows; ++r) {
      b.outputs[Out::kRowRstd].as<float>()[group.number[r]] =
          scale_of_group(x + group.at[r], group.width, plan.scaling_eps);
    }
  }
};

// Takes sums of squares that the node was given.
void take_given(const Binding& b, const PowerNormPlan& plan, std::size_t block, const Tile& tile) {
  const TensorRef& given = b.inputs[In::kSquares];
  take_squares(plan.columns, {b.workspace, block, 0}, given, tile);
  if (block > 0 || !plan.pad_stats) return;
  take_row(plan.columns, given, SquareRow::kAllSquares, plan.sum(b, 0, 1, 0), tile);
}

// Writes y of a batch whose rstd is known and forms the sums of its squares on the way if they are
// needed.
template <class Rows>
void forward_in_one_pass(const Rows& rows, const Step& step) {
  const Binding& b = rows.b;
  const auto& plan = rows.plan;
  const ColumnBlocks& blocks = plan.columns.blocks;
  blocks.run_channels([&](const Tile& tile) HWY_ATTR { running_statistics(b, plan, tile); });
  blocks.run([&](std::size_t block, const Tile& tile) HWY_ATTR {
    const bool is_given = plan.columns.is_given;
    is_given ? take_given(b, plan, block, tile) : plan.clear_sums(b, block, tile);
    for_row_parts(tile, [&](const Tile& part) HWY_ATTR {
      step.uses_batch && !is_given ? rows.sum_and_write(block, part)
                                   : rows.write_alone(block, part);
    });
  });
  if (!step.uses_batch) return;
  blocks.run_channels([&](const Tile& tile) HWY_ATTR { batch_statistics(b, plan, step, tile); });
}

template <class Rows>
void forward_in_two_passes(const Rows& rows, const Step& step) {
  const Binding& b = rows.b;
  const auto& plan = rows.plan;
  run_columns(
      plan.columns.blocks,
      [&](std::size_t block, const Tile& tile) HWY_ATTR {
        if (plan.columns.is_given) return take_given(b, plan, block, tile);
        plan.clear_sums(b, block, tile);
        for_row_parts(tile, [&](const Tile& part) HWY_ATTR { rows.sum(block, part); });
      },
      [&](const Tile& tile) HWY_ATTR { batch_statistics(b, plan, step, tile); },
      [&](const Tile& tile) HWY_ATTR { rows.write(tile); });
}

template <class Rows>
void write_result(const Rows& rows, const Step& step) {
  step.is_warming_up ? forward_in_two_passes(rows, step) : forward_in_one_pass(rows, step);
}

void forward(const Binding& b, const PowerNormPlan& plan) {
  const Step step = step_of(b, plan);
  with_elements(b.inputs[In::kX], [&]<class T>(T) HWY_ATTR {
    plan.is_scaled() ? write_result(ScaledRows<T>{b, plan}, step)
                     : write_result(PlainRows<T>{b, plan}, step);
  });
  if (!plan.training) return;
  const std::int32_t* count = b.inputs[In::kStep].as<std::int32_t>();
  if (count) *b.outputs[Out::kNextStep].as<std::int32_t>() = *count + (step.uses_batch ? 1 : 0);
  const auto channels = std::size_t(plan.columns.blocks.sizes.channels);
  const double gamma = largest_magnitude(b.outputs[Out::kGamma].as<float>(), channels);
  *b.outputs[Out::kContraction].as<float>() = float((1 - plan.alpha_b) * gamma);
  *b.outputs[Out::kNuMax].as<float>() = largest_magnitude(b.inputs[In::kNu].as<float>(), channels);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace keel::onednn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace keel::onednn {

HWY_EXPORT(forward);

Prepared prepare_power_norm(const NodeContext& context) {
  PowerNormPlan plan =
      power_norm_plan(context.input(In::kX).shape, context.attrs<PowerNormAttrs>(), 1, 1);
  plan.columns.is_given = context.has(In::kSquares);
  return kernel_of(
      [=](const Binding& b) {
        const auto run = HWY_DYNAMIC_DISPATCH(forward);
        run(b, plan);
      },
      plan.columns.bytes());
}

}  // namespace keel::onednn
#endif
