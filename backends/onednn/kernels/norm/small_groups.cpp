#include "backends/onednn/kernels/norm/small_groups.h"

#ifndef KEEL_SMALL_GROUPS_PLACES  // this file is compiled once per instruction set
#define KEEL_SMALL_GROUPS_PLACES
namespace keel::onednn {
namespace {

using SmallIn = AffineInput;
using SmallOut = CentredOutput;

}  // namespace
}  // namespace keel::onednn
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/onednn/kernels/norm/small_groups.cpp"
#include <hwy/foreach_target.h>

#include "backends/onednn/simd/small_groups-inl.h"

HWY_BEFORE_NAMESPACE();
namespace keel::onednn {
namespace HWY_NAMESPACE {
namespace {

// The tensors of a forward. `gain` and `bias` are those of all slots.
template <class T>
struct ForwardTensors {
  const T* x;
  const float *gain, *bias;
  float *mean, *rstd;
  ResultRows y;
};

template <class T, class Width>
HWY_INLINE void forward_lanes(const ForwardTensors<T>& t, const LaneStatistic& statistic,
                              Width width, const Lanes& lanes) {
  HWY_ALIGN float x[kSmallWidth * kLanes];
  const float *gain = t.gain + lanes.at, *bias = t.bias + lanes.at;
  t.y.prefetch(lanes.group * width, kLanes * width);
  read_lanes(t.x, lanes, width, x);
  const Standardize xhat = standardize_groups(x, width, statistic);
  with_part(lanes, [&](auto part) KEEL_LOOP_BODY {
    part.store(xhat.mean, t.mean + lanes.group);
    part.store(xhat.rstd, t.rstd + lanes.group);
  });
  with_range(xhat, [&](const auto& of) KEEL_LOOP_BODY {
    for_elements(
        width,
        [&](std::size_t i, std::size_t) KEEL_LOOP_BODY {
          const Floats v = hn::MulAdd(of(element(x, i)), element(gain, i), element(bias, i));
          hn::StoreU(v, F(), x + i * kLanes);
        },
        [](std::size_t) {});
  });
  write_lanes(x, lanes, width, t.y);
}

// Writes y of some bundles of units and saves mean and rstd. `parameters` holds the gain of all
// slots, then the bias.
void forward(const Binding& b, const SmallGroups& groups, const float* parameters,
             const RowRange& bundles) {
  const LaneStatistic statistic(groups.statistic, groups.width);
  with_width(b.inputs[SmallIn::kX], groups.width, [&]<class T>(T, auto width) HWY_ATTR {
    const ForwardTensors<T> tensors{.x = b.inputs[SmallIn::kX].as<T>(),
                                    .gain = parameters,
                                    .bias = parameters + groups.spread(),
                                    .mean = b.outputs[SmallOut::kMean].as<float>(),
                                    .rstd = b.outputs[SmallOut::kRstd].as<float>(),
                                    .y = ResultRows(b, groups.run())};
    for (std::size_t at = bundles.first; at < bundles.last; ++at) {
      for_lanes_of_bundle(groups, at / groups.bundles, at % groups.bundles,
                          [&](const Lanes& lanes)
                              KEEL_LOOP_BODY { forward_lanes(tensors, statistic, width, lanes); });
    }
  });
}

// Spreads gain and bias over the slots of a unit, one behind the other.
void spread_affine(const SmallGroups& groups, const SmallGroupParameter& gain,
                   const SmallGroupParameter& bias, float* to) {
  spread(groups, gain, to);
  spread(groups, bias, to + groups.spread());
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace keel::onednn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace keel::onednn {

HWY_EXPORT(forward);
HWY_EXPORT(spread_affine);

Prepared prepare_small_groups(const SmallGroups& groups, std::size_t repeats) {
  const RowBlocks blocks = independent_row_blocks(
      {std::int64_t(groups.units() * groups.bundles), std::int64_t(kBundle * groups.width)});
  const auto run = [=](const Binding& b) {
    float* const parameters = static_cast<float*>(b.workspace);
    const SmallGroupParameter gain{b.inputs[SmallIn::kGain].as<float>(), 1, repeats},
        bias{b.inputs[SmallIn::kBias].as<float>(), 0, repeats};
    HWY_DYNAMIC_DISPATCH(spread_affine)(groups, gain, bias, parameters);
    blocks.run([&](std::size_t, const RowRange& bundles) {
      HWY_DYNAMIC_DISPATCH(forward)(b, groups, parameters, bundles);
    });
  };
  return kernel_of(run, std::int64_t(2 * groups.spread() * sizeof(float)));
}

}  // namespace keel::onednn
#endif
