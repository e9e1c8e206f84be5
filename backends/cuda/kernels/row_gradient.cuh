// Groups lookups by id and sums each group: this gives the gradients of tables.
#pragma once

#include "backends/cuda/device.h"
#include "src/ops/row_gradient.h"

namespace keel::cuda {

// The outputs of group_ids for n ids; for the names see src/ops/row_gradient.h.
template <class T>
struct GroupLists {
  Global<T> order, unique, begins;
};
using Groups = GroupLists<std::int32_t>;

// Bytes of workspace needed to sort n ids.
std::int64_t grouping_bytes(std::int64_t n);
// Launches the kernels that sort the ids (stable) and list the groups.
void launch_grouping(const GroupIdsAttrs& attrs, Global<const std::int32_t> ids,
                     const Groups& groups, void* workspace);

__device__ inline float zero_of(float) { return 0; }
__device__ inline float4 zero_of(float4) { return make_float4(0, 0, 0, 0); }
__device__ inline void add_to(float& sum, float x) { sum += x; }
__device__ inline void add_to(float4& sum, float4 x) {
  sum.x += x.x, sum.y += x.y, sum.z += x.z, sum.w += x.w;
}

// Writes the sum over group g to row g of `rows` or, if `unique` is given, to row unique[g]; then
// an empty group writes no row. T: a float, or float4 if the width, `units` of T, permits it.
template <class T>
__global__ void add_groups(std::int64_t units, GroupLists<const std::int32_t> groups,
                           Global<const T> dy, Global<T> rows) {
  const auto& [order, unique, begins] = groups;
  const std::int64_t n = order.size();
  for (std::int64_t e = grid_thread(); e < n * units; e += grid_threads()) {
    const std::int64_t group = e / units, unit = e % units;
    const std::int32_t first = begins[group], last = begins[group + 1];
    if (unique && first == last) continue;
    T sum = zero_of(T());
    for (std::int32_t k = first; k < last; ++k) add_to(sum, dy[order[k] * units + unit]);
    rows[(unique ? unique[group] : group) * units + unit] = sum;
  }
}

}  // namespace keel::cuda
