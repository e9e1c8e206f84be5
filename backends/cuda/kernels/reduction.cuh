// Reductions over any axes. The elements of a result are cut into chunks, only by sizes. Blocks
// reduce the chunks independently; a second kernel of the same kind reduces the chunks' values. The
// order is fixed, so results have the same bits from run to run.
#pragma once

#include <algorithm>
#include <bit>
#include <vector>

#include "backends/cuda/kernels/strided.cuh"
#include "backends/cuda/kernels/warp.cuh"

namespace keel::cuda {

inline constexpr int kReduceBlock = 256;
inline constexpr std::int64_t kTermsAThread = 8;     // at least, before a result is cut
inline constexpr std::int64_t kReduceBlocks = 1024;  // the number of blocks to aim for when cutting

// x, with each axis either kept or reduced: `results` results of `terms` elements each.
struct Reduction {
  Extent kept, reduced;
  Steps kept_steps, reduced_steps;
  std::int64_t results = 1, terms = 1;
  std::int64_t chunks = 1, length = 1;  // terms of a chunk
  // A block computes `columns` results at once, each with kReduceBlock / columns threads. These are
  // neighbours if a result's elements are, and far apart if neighbouring elements belong to
  // different results. Either way neighbouring threads read neighbouring elements.
  int columns = 1;
  bool is_along = true;

  __host__ __device__ int rows() const { return kReduceBlock / columns; }
  __host__ __device__ std::int64_t strips() const { return (results + columns - 1) / columns; }
};

// Chooses the number of columns and chunks.
inline void cut(Reduction& r) {
  const auto power = [](std::int64_t n) { return std::int64_t(std::bit_ceil(std::uint64_t(n))); };
  const std::int64_t most_rows = r.is_along ? kReduceBlock : 8;
  const std::int64_t rows = std::min(power(ceil_div(r.terms, kTermsAThread)), most_rows);
  r.columns = int(kReduceBlock / rows);
  if (!r.is_along) r.columns = int(std::min<std::int64_t>(r.columns, power(r.results)));
  const std::int64_t worthwhile = ceil_div(r.terms, kTermsAThread * r.rows());
  const std::int64_t wanted = kReduceBlocks / std::max<std::int64_t>(r.strips(), 1);
  const std::int64_t most = std::max<std::int64_t>(std::min(worthwhile, wanted), 1);
  r.length = std::max<std::int64_t>(ceil_div(r.terms, most), 1);
  r.chunks = std::max<std::int64_t>(ceil_div(r.terms, r.length), 1);
}

inline Reduction make_reduction(const Shape& x, const std::vector<std::int64_t>& axes) {
  Reduction r;
  const Steps own = steps(x);
  for (int axis = 0; axis < x.rank(); ++axis) {
    if (x[axis] == 1) continue;
    r.is_along = std::ranges::find(axes, axis) != axes.end();
    (r.is_along ? r.terms : r.results) *= x[axis];
    append_axis(r.is_along ? r.reduced : r.kept, r.is_along ? r.reduced_steps : r.kept_steps,
                x[axis], own.along[axis]);
  }
  cut(r);
  return r;
}

// A reduction of n terms to one result.
inline Reduction reduction_of_all(std::int64_t n) { return make_reduction({n}, {0}); }

// The bytes of workspace needed by a reduction to values of type T.
template <class T>
std::int64_t partial_bytes(const Reduction& r) {
  return r.chunks > 1 ? r.results * r.chunks * std::int64_t(sizeof(T)) : 0;
}

// Calls store(place, value) for every chunk of every result. value joins terms(result, place in x)
// over the chunk's elements, in the type Terms::Value.
template <class Join, class Terms, class Store>
__global__ void __launch_bounds__(kReduceBlock, 2)
    reduce_chunks(Reduction r, Terms terms, Store store) {
  using Value = typename Terms::Value;
  __shared__ Shared<Value, kReduceBlock> shared;
  const int thread = int(threadIdx.x), rows = r.rows();
  const int column = r.is_along ? thread / rows : thread % r.columns;
  const int row = r.is_along ? thread % rows : thread / r.columns;
  const int to_next_row = r.is_along ? 1 : r.columns;
  const std::int64_t result = blockIdx.x % r.strips() * r.columns + column;
  const std::int64_t chunk = blockIdx.x / r.strips(), first = chunk * r.length;
  const std::int64_t last = first + r.length < r.terms ? first + r.length : r.terms;
  const Join join;
  Value value = Value(Join::kNeutral);
  if (result < r.results) {
    const std::int64_t start = place(r.kept, r.kept_steps, result);
    for (std::int64_t term = first + row; term < last; term += rows) {
      value = join(value, terms(result, start + place(r.reduced, r.reduced_steps, term)));
    }
  }
  shared[thread] = value;
  __syncthreads();
  for (int half = rows / 2; half > 0; half /= 2) {
    if (row < half) shared[thread] = join(shared[thread], shared[thread + half * to_next_row]);
    __syncthreads();
  }
  if (row == 0 && result < r.results) store(result * r.chunks + chunk, shared[thread]);
}

// The elements of x as values of type T: sums are taken in double and rounded once.
template <class T, class From = T>
struct Elements {
  using Value = T;
  Global<const From> x;
  __device__ T operator()(std::int64_t, std::int64_t at) const { return x[at]; }
};

struct Smallest {
  static constexpr std::int64_t kNeutral = INT64_MAX;
  __device__ std::int64_t operator()(std::int64_t a, std::int64_t b) const { return a < b ? a : b; }
};

struct StoreQuotient {
  Global<float> y;
  double divisor = 1;
  template <class T>
  __device__ void operator()(std::int64_t result, T value) const {
    y[result] = float(value / divisor);
  }
};

template <class T>
struct StoreValue {
  Global<T> y;
  __device__ void operator()(std::int64_t at, const T& value) const { y[at] = value; }
};

// Calls store(result, value) on the device, where value joins all terms of a result. `partial` is
// workspace of partial_bytes.
template <class Join, class Terms, class Store>
void reduce(const Reduction& r, const Terms& terms, void* partial, const Store& store) {
  using Value = typename Terms::Value;
  const Grid grid{r.strips() * r.chunks, kReduceBlock};
  if (r.chunks == 1) return launch(reduce_chunks<Join, Terms, Store>, grid, r, terms, store);
  const Global<Value> values(static_cast<Value*>(partial), r.results * r.chunks);
  launch(reduce_chunks<Join, Terms, StoreValue<Value>>, grid, r, terms, StoreValue<Value>{values});
  const Reduction rest = make_reduction({r.results, r.chunks}, {1});  // no more than one chunk
  launch(reduce_chunks<Join, Elements<Value>, Store>, {rest.strips(), kReduceBlock}, rest,
         Elements<Value>{values}, store);
}

}  // namespace keel::cuda
