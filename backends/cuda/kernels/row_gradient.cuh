// Lookups grouped by their ids, and sums over the groups: the gradients of tables.
#pragma once

#include "backends/cuda/device.h"
#include "src/ops/row_gradient.h"

namespace keel::cuda {

// What src/ops/row_gradient.h calls so, of n ids.
template <class T>
struct GroupLists {
  Global<T> order, unique, begins;
};
using Groups = GroupLists<std::int32_t>;

// Bytes that sorting n ids needs.
std::int64_t grouping_bytes(std::int64_t n);
// Launches the kernels that sort ids, stable, and list the groups.
void launch_grouping(const GroupIdsAttrs& attrs, Global<const std::int32_t> ids,
                     const Groups& groups, void* workspace);

__device__ inline float zero_of(float) { return 0; }
__device__ inline float4 zero_of(float4) { return make_float4(0, 0, 0, 0); }
__device__ inline void add_to(float& sum, float x) { sum += x; }
__device__ inline void add_to(float4& sum, float4 x) {
  sum.x += x.x, sum.y += x.y, sum.z += x.z, sum.w += x.w;
}

// Row g of `rows` or, where `unique` is given, row unique[g] becomes the sum over group g; then an
// empty group has no row. T: a float, or four where the width, `units` of T, allows it.
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
