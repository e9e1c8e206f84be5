// The noise after a batch norm, sampled in registers: a lane is a feature of a sample.
#include "src/ops/norm_noise.h"

#include "backends/onednn/column_plan.h"
#include "backends/onednn/kernels/kernels.h"
#include "backends/onednn/philox_stream.h"

#ifndef KEEL_NORM_NOISE_PLAN  // this file is compiled once per instruction set
#define KEEL_NORM_NOISE_PLAN
namespace keel::onednn {
namespace {

struct NoisePlan {
  NormNoiseAttrs attrs;
  ColumnSizes sizes;
  bool shifts;  // the backward only scales
};

using In = NormNoiseInput;

// One run: the stream of its update and the means of every unit's noise (channels).
struct Noise {
  PhiloxStream stream;
  std::int32_t first_row;
  const float *m, *v;
};

}  // namespace
}  // namespace keel::onednn
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/onednn/kernels/norm_noise.cpp"
#include <hwy/foreach_target.h>

#include "backends/onednn/simd/philox-inl.h"
#include "backends/onednn/simd/row_norm-inl.h"

HWY_BEFORE_NAMESPACE();
namespace keel::onednn {
namespace HWY_NAMESPACE {
namespace {

// y = s * x + m.
struct Map {
  Floats s, m;
};

// Draws the maps of channels c, c + 1, ... of the sample at `place`.
template <class Part>
HWY_INLINE Map draw(Part part, const NoisePlan& plan, const Noise& noise, const SamplePlace& place,
                    std::size_t c) {
  const PhiloxWords words =
      philox_words(noise.stream, std::int64_t(place.row), std::int64_t(place.first / 4 + c));
  const Floats s = hn::MulAdd(normal(words.w[2], words.w[3]), splat(float(plan.attrs.r_std)),
                              part.load(noise.v + c));
  if (!plan.shifts) return {s, zero()};
  const Floats u = hn::MulAdd(uniform(words.w[0]), splat(2), splat(-1));
  return {s, hn::MulAdd(u, splat(float(plan.attrs.r_mean)), part.load(noise.m + c))};
}

// Maps `count` spans of `inner` elements: span k takes lane k of the map.
template <class T>
HWY_INLINE void map_spans(std::size_t count, std::size_t inner, const Map& map, const T* x,
                          const ResultRows& y) {
  HWY_ALIGN float s[kLanes], m[kLanes];
  hn::Store(map.s, F(), s);
  hn::Store(map.m, F(), m);
  for (std::size_t k = 0; k < count; ++k) {
    const Floats scale = splat(s[k]), shift = splat(m[k]);
    for_lanes(inner, [=, at = k * inner](auto part, std::size_t e) KEEL_LOOP_BODY {
      y.put_cached(part, hn::MulAdd(part.load(x + at + e), scale, shift), at + e);
    });
  }
}

// Maps sample i; x and y are those of the sample.
template <class T>
void map_sample(const NoisePlan& plan, const Noise& noise, std::int64_t i, const T* x,
                const ResultRows& y) {
  const auto channels = std::size_t(plan.sizes.channels), inner = std::size_t(plan.sizes.inner);
  const SamplePlace place =
      sample_place(i, plan.attrs.positions, plan.sizes.channels, noise.first_row);
  for_lanes(channels, [&](auto part, std::size_t c) KEEL_LOOP_BODY {
    const Map map = draw(part, plan, noise, place, c);
    if (inner > 1) {
      return map_spans(std::min(kLanes, channels - c), inner, map, x + c * inner,
                       y.from(c * inner));
    }
    y.put_cached(part, hn::MulAdd(part.load(x + c), map.s, map.m), c);
  });
}

template <class T>
HWY_INLINE void copy_sample(const T* x, std::size_t n, const ResultRows& y) {
  for_lanes(
      n, [=](auto part, std::size_t i) KEEL_LOOP_BODY { y.put_cached(part, part.load(x + i), i); });
}

// Maps the samples [begin, end) that the mask keeps; the others pass as they are.
void apply(const Binding& b, const NoisePlan& plan, const Noise& noise, std::int64_t begin,
           std::int64_t end) {
  const auto row = std::size_t(plan.sizes.channels * plan.sizes.inner);
  const RowMask mask = b.inputs[In::kMask].as<std::uint8_t>();
  const bool is_in_place = b.inputs[In::kX].data == b.outputs[0].data;
  with_elements(b.inputs[In::kX], [&]<class T>(T) HWY_ATTR {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::size_t at = std::size_t(i) * row;
      const T* x = b.inputs[In::kX].as<T>() + at;
      const ResultRows y = ResultRows::cached(b).from(at);
      const bool is_kept = mask == nullptr || mask[i] != 0;
      if (is_kept) map_sample(plan, noise, i, x, y);
      if (!is_kept && !is_in_place) copy_sample(x, row, y);
    }
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace keel::onednn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace keel::onednn {

HWY_EXPORT(apply);

namespace {

void run(const Binding& b, const NoisePlan& plan) {
  const std::int64_t channels = plan.sizes.channels, row = channels * plan.sizes.inner;
  const std::int32_t step = *b.inputs[In::kStep].as<std::int32_t>();
  const Philox random = random_stream(plan.attrs, step);
  float *m = static_cast<float*>(b.workspace), *v = m + channels;
  for (std::int64_t j = 0; j < channels; ++j) {
    const UnitNoise unit = unit_noise(plan.attrs, random, j);
    m[j] = float(unit.m);
    v[j] = float(unit.v);
  }
  const Noise noise{PhiloxStream::of(plan.attrs, step), *b.inputs[In::kFirstRow].as<std::int32_t>(),
                    m, v};
  const auto apply_to = HWY_DYNAMIC_DISPATCH(apply);
  const std::int64_t rows =
      std::max<std::int64_t>(1, kBlockElements / std::max<std::int64_t>(1, row));
  parallel_range(plan.sizes.outer, rows, [&](std::int64_t begin, std::int64_t end) {
    apply_to(b, plan, noise, begin, end);
  });
}

Prepared prepare(const NodeContext& context, bool shifts) {
  const NoisePlan plan{context.attrs<NormNoiseAttrs>(), column_sizes(context.input(In::kX).shape),
                       shifts};
  return kernel_of([=](const Binding& b) { run(b, plan); },
                   2 * plan.sizes.channels * std::int64_t(sizeof(float)));
}

}  // namespace

Prepared prepare_norm_noise(const NodeContext& context) { return prepare(context, true); }
Prepared prepare_norm_noise_backward(const NodeContext& context) { return prepare(context, false); }

}  // namespace keel::onednn
#endif
