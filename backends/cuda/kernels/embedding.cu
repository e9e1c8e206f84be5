// Embedding lookup: rows of a table by number, and their gradients added up.
#include <cmath>

#include "backends/cuda/device.h"
#include "backends/cuda/kernels/kernels.h"
#include "src/ops/embedding.h"

namespace keel::cuda {
namespace {

// A row is moved in units of T: a float, or four where the width allows it.
struct Lookup {
  std::int64_t ids, vocabulary, units, padding_id;

  __device__ bool is_padding(std::int64_t id) const { return padding_id >= 0 && id == padding_id; }
  __device__ bool is_in_table(std::int64_t id) const { return id >= 0 && id < vocabulary; }
};

__device__ inline float filled(float value, float) { return value; }
__device__ inline float4 filled(float value, float4) {
  return make_float4(value, value, value, value);
}
__device__ inline void add(float& sum, float x) { sum += x; }
__device__ inline void add(float4& sum, float4 x) {
  sum.x += x.x, sum.y += x.y, sum.z += x.z, sum.w += x.w;
}

template <class T>
__global__ void look_up(Lookup op, Global<const T> table, Global<const std::int32_t> ids,
                        Global<T> y) {
  for (std::int64_t e = grid_thread(); e < op.ids * op.units; e += grid_threads()) {
    const std::int64_t id = ids[e / op.units];
    if (op.is_padding(id) || !op.is_in_table(id)) {
      y[e] = filled(op.is_padding(id) ? 0 : NAN, T());
    } else {
      y[e] = table[id * op.units + e % op.units];
    }
  }
}

constexpr int kBlock = 128, kTile = 1024;  // ids that a block looks at together
constexpr int kWords = kTile / kWarp;      // of a bit for each of them

// Writes to `found`, in order, which of the tile's ids are set in `words`; returns how many. Every
// thread counts, the first warp writes: a lane the bits of its word.
__device__ int list_found(Shared<unsigned, 2 * kWords>& words, int first_word,
                          Shared<int, kTile>& found) {
  const int lane = int(threadIdx.x) % kWarp;
  int count = 0, own = 0;
  for (int w = 0; w < kWords; ++w) {
    if (w == lane) own = count;
    count += __popc(words[first_word + w]);
  }
  if (threadIdx.x < kWarp) {
    for (unsigned bits = words[first_word + lane]; bits != 0; bits &= bits - 1) {
      found[own++] = lane * kWarp + __ffs(int(bits)) - 1;
    }
  }
  return count;
}

// A block adds up kBlock units of one row of the table, visiting the ids in their order.
template <class T>
__global__ void __launch_bounds__(kBlock)
    add_rows(Lookup op, Global<const std::int32_t> ids, Global<const T> dy, Global<T> dtable) {
  static_assert(kWords == kWarp);
  // Two halves by turns: the barrier behind a tile's words also ends all use of the tile before.
  __shared__ Shared<unsigned, 2 * kWords> words;
  __shared__ Shared<int, kTile> found;
  const std::int64_t strips = (op.units + kBlock - 1) / kBlock, row = blockIdx.x / strips;
  const std::int64_t unit = blockIdx.x % strips * kBlock + threadIdx.x;
  const int lane = int(threadIdx.x) % kWarp, warp = int(threadIdx.x) / kWarp;
  T sum = filled(0, T());
  int turn = 0;
  for (std::int64_t tile = 0; tile < op.ids && !op.is_padding(row); tile += kTile) {
    for (int word = turn + warp; word < turn + kWords; word += kBlock / kWarp) {
      const std::int64_t first = tile + (word - turn) * kWarp, i = first + lane;
      const unsigned bits =
          first < op.ids ? __ballot_sync(kAllLanes, i < op.ids && ids[i] == row) : 0;
      if (lane == 0) words[word] = bits;
    }
    __syncthreads();
    if (__any_sync(kAllLanes, words[turn + lane] != 0)) {
      const int count = list_found(words, turn, found);
      __syncthreads();
      for (int k = 0; k < count && unit < op.units; ++k) {
        add(sum, dy[(tile + found[k]) * op.units + unit]);
      }
    }
    turn = kWords - turn;
  }
  if (unit < op.units) dtable[row * op.units + unit] = sum;
}

template <class T>
void forward(const Binding& b, const Lookup& op) {
  using In = EmbeddingInput;
  launch(look_up<T>, one_thread_each(op.ids * op.units), op, global<const T>(b.inputs[In::kTable]),
         global<const std::int32_t>(b.inputs[In::kIds]), global<T>(b.outputs[0]));
}

template <class T>
void backward(const Binding& b, const Lookup& op) {
  using In = EmbeddingBackwardInput;
  const Grid grid{op.vocabulary * ceil_div(op.units, kBlock), kBlock};
  launch(add_rows<T>, grid, op, global<const std::int32_t>(b.inputs[In::kIds]),
         global<const T>(b.inputs[In::kDy]), global<T>(b.outputs[0]));
}

Lookup make_lookup(const TensorType& ids, const Shape& table, std::int64_t padding_id) {
  const std::int64_t width = table[1];
  return {ids.shape.elements(), table[0], width % 4 == 0 ? width / 4 : width, padding_id};
}

}  // namespace

Prepared prepare_embedding(const NodeContext& context) {
  using In = EmbeddingInput;
  const Shape& table = context.input(In::kTable).shape;
  const Lookup op =
      make_lookup(context.input(In::kIds), table, context.attrs<EmbeddingAttrs>().padding_id);
  return kernel_of([op, run = table[1] % 4 == 0 ? forward<float4> : forward<float>](
                       const Binding& b) { run(b, op); });
}

Prepared prepare_embedding_backward(const NodeContext& context) {
  const Shape& table = context.output().shape;
  const Lookup op = make_lookup(context.input(EmbeddingBackwardInput::kIds), table,
                                context.attrs<EmbeddingBackwardAttrs>().padding_id);
  return kernel_of([op, run = table[1] % 4 == 0 ? backward<float4> : backward<float>](
                       const Binding& b) { run(b, op); });
}

}  // namespace keel::cuda
