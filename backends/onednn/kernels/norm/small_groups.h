// Group norm of tokens whose groups have a few elements each. A register holds the same element of
// as many groups as it has lanes, so that nothing is summed over lanes. Groups are taken in bundles
// of the same size on every instruction set, and short samples together in one unit.
#pragma once

#include <algorithm>
#include <cstddef>

#include "backends/onednn/column_sums.h"
#include "backends/onednn/row_blocks.h"
#include "src/ops/norm/norm.h"
#include "src/ops/norm/sizes.h"
#include "src/runtime/backend.h"

namespace keel::onednn {

inline constexpr std::size_t kSmallWidth = 32;  // elements of a group, at most
inline constexpr std::size_t kBundle = 16;      // groups

inline bool has_small_groups(const GroupSizes& s) {
  return s.inner == 1 && s.width() <= std::int64_t(kSmallWidth);
}

// Samples seen as units of `together` samples; the last unit may have fewer. A unit's groups have
// `slots`, which are whole bundles.
struct SmallGroups {
  NormStatistic statistic;
  std::size_t total, groups, width;  // groups in all and of a sample; elements of a group
  std::size_t together, bundles;     // samples and bundles of a unit

  SmallGroups(const NormStatistic& of, const GroupSizes& s)
      : statistic(of),
        total(std::size_t(s.samples * s.groups)),
        groups(std::size_t(s.groups)),
        width(std::size_t(s.width())),
        together(std::max<std::size_t>(1, kBundle / groups)),
        bundles((unit() + kBundle - 1) / kBundle) {}
  std::size_t unit() const { return together * groups; }  // groups
  std::size_t slots() const { return bundles * kBundle; }
  std::size_t units() const { return (total + unit() - 1) / unit(); }
  // The slots of a unit that hold a group.
  std::size_t taken(std::size_t at) const { return std::min(unit(), total - at * unit()); }

  // The elements of a parameter spread over the slots of a unit.
  std::size_t spread() const { return slots() * width; }
  // The size of rows that are written one after the other.
  std::size_t run() const { return unit() * width; }
};

// A parameter (channels), or the value of all its elements if it is absent.
struct SmallGroupParameter {
  const float* values;
  float otherwise;
  std::size_t repeats;  // elements of a group that share one

  float at(std::size_t element) const {
    if (values == nullptr) return otherwise;
    return values[repeats == 1 ? element : element / repeats];
  }
};

// The kernels for the places AffineInput, CentredOutput, CentredAffineBackwardInput and
// AffineGradient. `repeats` is the number of elements of a group that share a parameter.
Prepared prepare_small_groups(const SmallGroups& groups, std::size_t repeats);
Prepared prepare_small_groups_backward(const SmallGroups& groups, std::size_t repeats,
                                       bool has_sums);

}  // namespace keel::onednn
