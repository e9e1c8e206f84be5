// The gradient of a table as rows: the sorted ids, and the sum of the gradients for each id. Ids
// are sorted in chunks, one chunk a block; sorted runs are merged in pairs until one is left.
#include <utility>

#include "backends/cuda/kernels/kernels.h"
#include "backends/cuda/kernels/row_gradient.cuh"
#include "backends/cuda/kernels/warp.cuh"

namespace keel::cuda {
namespace {

// An id above and its place below. No two are equal, so that there is only one order.
using PlacedId = std::uint64_t;
constexpr int kPlaceBits = 32;
constexpr PlacedId kNoId = 0xffffffff;  // of what fills the last chunk

constexpr int kSortBlock = 256, kEach = 4, kChunk = kEach * kSortBlock;

std::int64_t chunks_of(std::int64_t n) { return ceil_div(n, kChunk); }

// Where the parts of the workspace lie.
struct GroupingSpace {
  Global<PlacedId> sorted, merged;  // a whole number of chunks
  Global<std::int32_t> starts;      // how many groups begin in each chunk

  GroupingSpace(std::int64_t n, void* workspace)
      : sorted(static_cast<PlacedId*>(workspace), chunks_of(n) * kChunk),
        merged(sorted.data() + sorted.size(), sorted.size()),
        starts(reinterpret_cast<std::int32_t*>(merged.data() + merged.size()), chunks_of(n)) {}
};

// As GroupIdsAttrs::key has it.
struct Keys {
  std::int64_t padding_id, vocabulary;
  __device__ PlacedId key(std::int32_t id) const {
    const bool is_padding = padding_id >= 0 && id == padding_id;
    return PlacedId(id < 0 || id >= vocabulary || is_padding ? vocabulary : id);
  }
};

// Bitonic: runs of `run` are merged from pairs of runs, every second one turned round.
__global__ void __launch_bounds__(kSortBlock)
    sort_chunks(Keys keys, Global<const std::int32_t> ids, Global<PlacedId> sorted) {
  __shared__ Shared<PlacedId, kChunk> chunk;
  const std::int64_t first = std::int64_t{blockIdx.x} * kChunk;
  for (int i = int(threadIdx.x); i < kChunk; i += kSortBlock) {
    const std::int64_t place = first + i;
    const PlacedId id = place < ids.size() ? keys.key(ids[place]) : kNoId;
    chunk[i] = id << kPlaceBits | PlacedId(place);
  }
  __syncthreads();
  for (int run = 2; run <= kChunk; run *= 2) {
    for (int step = run / 2; step > 0; step /= 2) {
      for (int pair = int(threadIdx.x); pair < kChunk / 2; pair += kSortBlock) {
        const int low = 2 * pair - (pair & (step - 1)), high = low + step;
        const PlacedId a = chunk[low], b = chunk[high];
        if ((a > b) == ((low & run) == 0)) {
          chunk[low] = b;
          chunk[high] = a;
        }
      }
      __syncthreads();
    }
  }
  for (int i = int(threadIdx.x); i < kChunk; i += kSortBlock) sorted[first + i] = chunk[i];
}

// How many of the run of `length` that begins at `first` are below `x`.
__device__ std::int64_t count_below(Global<const PlacedId> sorted, std::int64_t first,
                                    std::int64_t length, PlacedId x) {
  std::int64_t from = 0, to = first + length < sorted.size() ? length : sorted.size() - first;
  while (from < to) {
    const std::int64_t middle = (from + to) / 2;
    if (sorted[first + middle] < x) {
      from = middle + 1;
    } else {
      to = middle;
    }
  }
  return from;
}

// Each element finds its place among those of the other run of its pair.
__global__ void merge_runs(std::int64_t length, Global<const PlacedId> sorted,
                           Global<PlacedId> merged) {
  for (std::int64_t e = grid_thread(); e < sorted.size(); e += grid_threads()) {
    const std::int64_t run = e / length, other = (run ^ 1) * length;
    const PlacedId x = sorted[e];
    const std::int64_t below = other < sorted.size() ? count_below(sorted, other, length, x) : 0;
    merged[run / 2 * 2 * length + e % length + below] = x;
  }
}

// The sorted ids as the listing of groups reads them.
struct SortedIds {
  Global<const PlacedId> sorted;
  std::int64_t n, vocabulary;

  __device__ std::int64_t id(std::int64_t k) const { return std::int64_t(sorted[k] >> kPlaceBits); }
  __device__ bool begins(std::int64_t k) const {
    return k < n && id(k) < vocabulary && (k == 0 || id(k - 1) != id(k));
  }
  // The first element of this thread, which looks at kEach of them.
  __device__ std::int64_t first() const {
    return std::int64_t{blockIdx.x} * kChunk + std::int64_t{threadIdx.x} * kEach;
  }
  __device__ int own_starts() const {
    int count = 0;
    for (std::int64_t k = first(); k < first() + kEach; ++k) count += begins(k);
    return count;
  }
};

__global__ void __launch_bounds__(kSortBlock)
    count_starts(SortedIds ids, Global<std::int32_t> starts) {
  const int count = over_block<kSortBlock>(ids.own_starts(), Add());
  if (threadIdx.x == 0) starts[blockIdx.x] = count;
}

// The sum over the threads before this one.
__device__ int sum_before(int value) {
  __shared__ Shared<int, 2 * kSortBlock> sums;  // two halves by turns
  const int thread = int(threadIdx.x);
  int turn = 0, sum = value;
  for (int reach = 1; reach < kSortBlock; reach *= 2) {
    sums[turn + thread] = sum;
    __syncthreads();
    if (thread >= reach) sum += sums[turn + thread - reach];
    turn = kSortBlock - turn;
  }
  return sum - value;
}

__global__ void __launch_bounds__(kSortBlock)
    list_groups(SortedIds ids, Global<const std::int32_t> starts, Groups groups) {
  int before = 0, all = 0;
  for (std::int64_t i = threadIdx.x; i < starts.size(); i += kSortBlock) {
    all += starts[i];
    if (i < blockIdx.x) before += starts[i];
  }
  before = over_block<kSortBlock>(before, Add());
  all = over_block<kSortBlock>(all, Add());
  const std::int64_t taken =
      count_below(ids.sorted, 0, ids.n, PlacedId(ids.vocabulary) << kPlaceBits);
  int group = before + sum_before(ids.own_starts());
  for (std::int64_t k = ids.first(); k < ids.first() + kEach && k < ids.n; ++k) {
    groups.order[k] = std::int32_t(ids.sorted[k]);
    if (ids.begins(k)) {
      groups.unique[group] = std::int32_t(ids.id(k));
      groups.begins[group++] = std::int32_t(k);
    }
    if (k < all) continue;
    groups.unique[k] = std::int32_t(ids.vocabulary);
    groups.begins[k] = std::int32_t(taken);
  }
  if (grid_thread() == 0) groups.begins[ids.n] = std::int32_t(taken);
}

// Without ids there is one group's end, and it is 0.
__global__ void begin_nothing(Global<std::int32_t> begins) { begins[0] = 0; }

template <class T>
void sum_groups(const Binding& b, std::int64_t units) {
  using In = SumGroupsInput;
  const GroupLists<const std::int32_t> groups{
      .order = global<const std::int32_t>(b.inputs[In::kOrder]),
      .unique = {},
      .begins = global<const std::int32_t>(b.inputs[In::kBegins])};
  launch(add_groups<T>, one_thread_each(groups.order.size() * units), units, groups,
         global<const T>(b.inputs[In::kDy]), global<T>(b.outputs[0]));
}

}  // namespace

std::int64_t grouping_bytes(std::int64_t n) {
  return chunks_of(n) *
         (2 * kChunk * std::int64_t(sizeof(PlacedId)) + std::int64_t(sizeof(std::int32_t)));
}

void launch_grouping(const GroupIdsAttrs& attrs, Global<const std::int32_t> ids,
                     const Groups& groups, void* workspace) {
  const std::int64_t n = ids.size(), chunks = chunks_of(n);
  if (n == 0) return launch(begin_nothing, {1, 1}, groups.begins);
  GroupingSpace space(n, workspace);
  launch(sort_chunks, {chunks, kSortBlock}, Keys{attrs.padding_id, attrs.vocabulary}, ids,
         space.sorted);
  for (std::int64_t length = kChunk; length < chunks * kChunk; length *= 2) {
    launch(merge_runs, one_thread_each(chunks * kChunk), length,
           Global<const PlacedId>(space.sorted), space.merged);
    std::swap(space.sorted, space.merged);
  }
  const SortedIds sorted{space.sorted, n, attrs.vocabulary};
  launch(count_starts, {chunks, kSortBlock}, sorted, space.starts);
  launch(list_groups, {chunks, kSortBlock}, sorted, Global<const std::int32_t>(space.starts),
         groups);
}

Prepared prepare_group_ids(const NodeContext& context) {
  using Out = GroupIdsOutput;
  return kernel_of(
      [attrs = context.attrs<GroupIdsAttrs>()](const Binding& b) {
        const auto out = [&](int place) { return global<std::int32_t>(b.outputs[place]); };
        launch_grouping(attrs, global<const std::int32_t>(b.inputs[0]),
                        {out(Out::kOrder), out(Out::kUnique), out(Out::kBegins)}, b.workspace);
      },
      grouping_bytes(context.input(0).shape.elements()));
}

Prepared prepare_sum_groups(const NodeContext& context) {
  const std::int64_t width = context.output().shape[1];
  if (width % 4 == 0) return kernel_of([=](const Binding& b) { sum_groups<float4>(b, width / 4); });
  return kernel_of([=](const Binding& b) { sum_groups<float>(b, width); });
}

}  // namespace keel::cuda
