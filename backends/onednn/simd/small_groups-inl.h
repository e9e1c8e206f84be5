// How the kernels of small groups read, write and repeat, compiled once per instruction set.
#if defined(KEEL_BACKENDS_ONEDNN_SIMD_SMALL_GROUPS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KEEL_BACKENDS_ONEDNN_SIMD_SMALL_GROUPS_INL_H_
#undef KEEL_BACKENDS_ONEDNN_SIMD_SMALL_GROUPS_INL_H_
#else
#define KEEL_BACKENDS_ONEDNN_SIMD_SMALL_GROUPS_INL_H_
#endif

#include "backends/onednn/kernels/norm/small_groups.h"
#include "backends/onednn/simd/lane_groups-inl.h"

HWY_BEFORE_NAMESPACE();
namespace keel::onednn {
namespace HWY_NAMESPACE {

// As many groups as a register has lanes: those of some neighbouring slots of a unit. The unit may
// end before the last of them.
struct Lanes {
  std::size_t group, count;  // the first, counted over all samples
  std::size_t at;            // of their elements among those of the slots

  HWY_INLINE bool is_full() const { return count == kLanes; }
};

// Calls body(lanes) for those of a bundle.
template <class Body>
HWY_INLINE void for_lanes_of_bundle(const SmallGroups& groups, std::size_t unit, std::size_t bundle,
                                    const Body& body) {
  const std::size_t end = std::min(groups.taken(unit), (bundle + 1) * kBundle);
  for (std::size_t slot = bundle * kBundle; slot < end; slot += kLanes) {
    body(Lanes{unit * groups.unit() + slot, std::min(kLanes, end - slot), slot * groups.width});
  }
}

// Calls body(T{}, width) with the type of x, and the width as a constant if it is a common one.
template <class Body>
HWY_INLINE void with_width(const TensorRef& x, std::size_t width, const Body& body) {
  with_elements(x, [&]<class T>(T element) HWY_ATTR {
    switch (width) {
      case 1:
        return body(element, std::integral_constant<std::size_t, 1>());
      case 2:
        return body(element, std::integral_constant<std::size_t, 2>());
      case 4:
        return body(element, std::integral_constant<std::size_t, 4>());
      case 8:
        return body(element, std::integral_constant<std::size_t, 8>());
      case 16:
        return body(element, std::integral_constant<std::size_t, 16>());
      case 32:
        return body(element, std::integral_constant<std::size_t, 32>());
      default:
        return body(element, width);
    }
  });
}

// Reads the groups of x into lanes; those after the last are 0.
template <class T, class Width>
HWY_INLINE void read_lanes(const T* x, const Lanes& lanes, Width width, float* to) {
  const std::size_t most = kLanes * width;
  prefetch_row(x + lanes.group * width + std::max(most, kAhead), most);
  if constexpr (std::is_same_v<T, float>) {
    if (lanes.is_full()) return load_groups(x + lanes.group * width, width, to);
  }
  HWY_ALIGN float plain[kSmallWidth * kLanes];
  const std::size_t n = lanes.count * width;
  for_lanes(n, [&](auto part, std::size_t i) KEEL_LOOP_BODY {
    part.store(part.load(x + lanes.group * width + i), plain + i);
  });
  std::fill(plain + n, plain + kLanes * width, 0.0f);
  load_groups(plain, width, to);
}

// The inverse for a result.
template <class Width>
HWY_INLINE void write_lanes(const float* from, const Lanes& lanes, Width width,
                            const ResultRows& y) {
  const std::size_t at = lanes.group * width;
  if (lanes.is_full() && y.is_plain()) return store_groups(from, width, y.plain() + at);
  HWY_ALIGN float plain[kSmallWidth * kLanes];
  store_groups(from, width, plain);
  for_lanes(lanes.count * width, [&](auto part, std::size_t i)
                                     KEEL_LOOP_BODY { y.put(part, part.load(plain + i), at + i); });
}

// Calls body(part) with that of a register of statistics that has a lane for each group.
template <class Body>
HWY_INLINE void with_part(const Lanes& lanes, const Body& body) {
  lanes.is_full() ? body(Whole{}) : body(First(lanes.count));
}

// Spreads a parameter over the slots of a unit, in the order of lanes.
HWY_INLINE void spread(const SmallGroups& groups, const SmallGroupParameter& parameter, float* to) {
  const std::size_t width = groups.width;
  for (std::size_t slot = 0; slot < groups.slots(); slot += kLanes, to += kLanes * width) {
    const bool is_plain = parameter.values != nullptr && parameter.repeats == 1;
    if (is_plain && slot + kLanes <= groups.groups) {
      load_groups(parameter.values + slot * width, width, to);
      continue;
    }
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      const std::size_t first = (slot + lane) % groups.groups * width;
      for (std::size_t i = 0; i < width; ++i) to[i * kLanes + lane] = parameter.at(first + i);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace keel::onednn
HWY_AFTER_NAMESPACE();

#endif  // toggled guard
