// The backward of group norm for small groups.
#include "backends/onednn/kernels/norm/group_norm_plan.h"
#include "backends/onednn/kernels/norm/small_groups.h"

#ifndef KEEL_SMALL_GROUPS_BACKWARD_PLACES  // this file is compiled once per instruction set
#define KEEL_SMALL_GROUPS_BACKWARD_PLACES
namespace keel::onednn {
namespace {

using SmallBackIn = CentredAffineBackwardInput;
using SmallBackOut = AffineGradient;

struct BlockOfUnits {
  std::size_t number;
  RowRange units;
};

}  // namespace
}  // namespace keel::onednn
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/onednn/kernels/norm/small_groups_backward.cpp"
#include <hwy/foreach_target.h>

#include "backends/onednn/simd/row_gradient-inl.h"
#include "backends/onednn/simd/small_groups-inl.h"

HWY_BEFORE_NAMESPACE();
namespace keel::onednn {
namespace HWY_NAMESPACE {
namespace {

// The elements of as many groups as a register has lanes.
struct LaneRows {
  const float *x, *dy, *gain;
};

// The sum of xhat would be 0 but for the rounding error of the saved mean, which is taken back.
template <class Xhat, class Width>
HWY_INLINE RowGradientOf<Xhat> lane_gradient(const LaneRows& rows, const Xhat& saved,
                                             const LaneStatistic& statistic, Width width) {
  LaneSum xhats, gs, products;
  for_elements(
      width,
      [&](std::size_t i, std::size_t k) KEEL_LOOP_BODY {
        const Floats xhat = hn::Mul(saved.off(element(rows.x, i)), saved.rstd);
        const Floats g = hn::Mul(element(rows.dy, i), element(rows.gain, i));
        xhats.add(k, xhat);
        gs.add(k, g);
        products.add_product(k, g, xhat);
      },
      [&](std::size_t terms) KEEL_LOOP_BODY {
        xhats.end_run(terms);
        gs.end_run(terms);
        products.end_run(terms);
      });
  const Floats low = hn::Mul(xhats.total(), statistic.share);
  const Floats factor =
      hn::Mul(statistic.inverse_count, slope_factors(statistic, saved.true_rstd()));
  const Floats slope = hn::Mul(factor, hn::NegMulAdd(low, gs.total(), products.total()));
  Xhat xhat = saved;
  xhat.low = low;
  return {xhat, hn::Mul(gs.total(), statistic.share), slope};
}

// The tensors of a backward. `gain` is that of all slots; `sums` may be null.
template <class T>
struct BackwardTensors {
  const T *x, *dy;
  const float *gain, *mean, *rstd;
  BlockSums* sums;
  ResultRows dx;
};

// Writes dx of some groups over dy and adds their share of dgain and dbias to the sums.
template <class T, class Width>
HWY_INLINE void backward_lanes(const BackwardTensors<T>& t, const LaneStatistic& statistic,
                               Width width, const Lanes& lanes) {
  HWY_ALIGN float x[kSmallWidth * kLanes], dy[kSmallWidth * kLanes];
  const float* gain = t.gain + lanes.at;
  t.dx.prefetch(lanes.group * width, kLanes * width);
  read_lanes(t.x, lanes, width, x);
  read_lanes(t.dy, lanes, width, dy);
  Standardize saved{.mean = zero(), .rstd = zero(), .low = zero()};
  with_part(lanes, [&](auto part) KEEL_LOOP_BODY {
    saved.mean = part.load(t.mean + lanes.group);
    saved.rstd = part.load_or(t.rstd + lanes.group, 1);
  });
  float *dgain = t.sums ? t.sums->run(kGain) + lanes.at : nullptr,
        *dbias = t.sums ? t.sums->run(kBias) + lanes.at : nullptr;
  with_range(saved, [&](const auto& of) KEEL_LOOP_BODY {
    const auto gradient = lane_gradient({x, dy, gain}, of, statistic, width);
    for_elements(
        width,
        [&](std::size_t i, std::size_t) KEEL_LOOP_BODY {
          const Floats dy_i = element(dy, i), xhat = gradient.xhat(element(x, i));
          hn::StoreU(gradient.dx(hn::Mul(dy_i, element(gain, i)), xhat), F(), dy + i * kLanes);
          if (dgain == nullptr) return;
          hn::StoreU(hn::MulAdd(dy_i, xhat, element(dgain, i)), F(), dgain + i * kLanes);
          hn::StoreU(hn::Add(dy_i, element(dbias, i)), F(), dbias + i * kLanes);
        },
        [](std::size_t) {});
  });
  write_lanes(dy, lanes, width, t.dx);
}

// Writes dx of some units. `gains` are those of all slots.
void backward(const Binding& b, const SmallGroups& groups, const float* gains, BlockSums* sums,
              const RowRange& units) {
  const LaneStatistic statistic(groups.statistic, groups.width);
  with_width(b.inputs[SmallBackIn::kX], groups.width, [&]<class T>(T, auto width) HWY_ATTR {
    const BackwardTensors<T> tensors{.x = b.inputs[SmallBackIn::kX].as<T>(),
                                     .dy = b.inputs[SmallBackIn::kDy].as<T>(),
                                     .gain = gains,
                                     .mean = b.inputs[SmallBackIn::kMean].as<float>(),
                                     .rstd = b.inputs[SmallBackIn::kRstd].as<float>(),
                                     .sums = sums,
                                     .dx = ResultRows(b, groups.run())};
    for (std::size_t unit = units.first; unit < units.last; ++unit) {
      for (std::size_t bundle = 0; bundle < groups.bundles; ++bundle) {
        for_lanes_of_bundle(groups, unit, bundle, [&](const Lanes& lanes) KEEL_LOOP_BODY {
          backward_lanes(tensors, statistic, width, lanes);
        });
      }
      if (sums) sums->end_addition();
    }
  });
}

// The same for a block of units whose sums are wanted.
void backward_block(const Binding& b, const SmallGroups& groups, const float* gains,
                    const ColumnSums& sums, const BlockOfUnits& block) {
  BlockSums of_block(sums, b.workspace, block.number);
  backward(b, groups, gains, &of_block, block.units);
  of_block.end_run();
}
void backward_alone(const Binding& b, const SmallGroups& groups, const float* gains,
                    const RowRange& units) {
  backward(b, groups, gains, nullptr, units);
}

// The inverse: adds the values of all elements that share one of the parameter's.
void gather(const SmallGroups& groups, std::size_t repeats, const float* from, float* to) {
  const std::size_t width = groups.width;
  const auto value = [&](std::size_t slot, std::size_t i) {
    return from[(slot / kLanes * width + i) * kLanes + slot % kLanes];
  };
  for (std::size_t group = 0; group < groups.groups; ++group) {
    for (std::size_t first = 0; first < width; first += repeats) {
      double sum = 0;
      for (std::size_t slot = group; slot < groups.unit(); slot += groups.groups) {
        for (std::size_t i = first; i < first + repeats; ++i) sum += value(slot, i);
      }
      *to++ = float(sum);
    }
  }
}

// Adds the sums of all blocks up to dgain and dbias (channels), of which either may be absent.
void add_up(const Binding& b, const SmallGroups& groups, std::size_t repeats,
            const ColumnSums& sums, float* room) {
  const auto store = [&](GroupSumKind kind, const TensorRef& out) HWY_ATTR {
    if (!out) return;
    sum_over_blocks(sums, b.workspace, kind, room, groups.spread());
    gather(groups, repeats, room, out.as<float>());
  };
  store(kGain, b.outputs[SmallBackOut::kDgain]);
  store(kBias, b.outputs[SmallBackOut::kDbias]);
}

// Spreads the gain over the slots of a unit.
void spread_gain(const SmallGroups& groups, const SmallGroupParameter& gain, float* to) {
  spread(groups, gain, to);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace keel::onednn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace keel::onednn {

HWY_EXPORT(backward_block);
HWY_EXPORT(backward_alone);
HWY_EXPORT(spread_gain);
HWY_EXPORT(add_up);

Prepared prepare_small_groups_backward(const SmallGroups& groups, std::size_t repeats,
                                       bool has_sums) {
  const RowBlocks blocks = blocks_of_samples({.samples = std::int64_t(groups.units()),
                                              .groups = std::int64_t(groups.slots()),
                                              .channels = std::int64_t(groups.width),
                                              .inner = 1},
                                             has_sums);
  const ColumnSums sums(kGroupSumKinds, std::int64_t(groups.spread()), has_sums ? blocks.count : 0);
  const std::int64_t bytes = sums.bytes();
  const auto run = [=](const Binding& b) {
    float* const gains = reinterpret_cast<float*>(static_cast<std::byte*>(b.workspace) + bytes);
    HWY_DYNAMIC_DISPATCH(spread_gain)
    (groups, {b.inputs[SmallBackIn::kGain].as<float>(), 1, repeats}, gains);
    blocks.run([&](std::size_t number, const RowRange& units) {
      if (!has_sums) return HWY_DYNAMIC_DISPATCH(backward_alone)(b, groups, gains, units);
      HWY_DYNAMIC_DISPATCH(backward_block)(b, groups, gains, sums, {number, units});
    });
    if (has_sums) HWY_DYNAMIC_DISPATCH(add_up)(b, groups, repeats, sums, gains);
  };
  return kernel_of(run, bytes + std::int64_t(groups.spread() * sizeof(float)));
}

}  // namespace keel::onednn
#endif
