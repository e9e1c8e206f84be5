// Embedding lookup: selects rows of a table by id; the backward sums the gradients of each row.
#include <cmath>

#include "backends/cuda/device.h"
#include "backends/cuda/kernels/kernels.h"
#include "backends/cuda/kernels/row_gradient.cuh"
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

template <class T>
__global__ void clear(Global<T> x) {
  for (std::int64_t e = grid_thread(); e < x.size(); e += grid_threads()) x[e] = filled(0, T());
}

template <class T>
void forward(const Binding& b, const Lookup& op) {
  using In = EmbeddingInput;
  launch(look_up<T>, one_thread_each(op.ids * op.units), op, global<const T>(b.inputs[In::kTable]),
         global<const std::int32_t>(b.inputs[In::kIds]), global<T>(b.outputs[0]));
}

// The groups of a backward's ids, and what sorting them needs, in its workspace.
struct GroupedLookup {
  Groups groups;
  void* sorting;

  GroupedLookup(const Binding& b, std::int64_t n)
      : groups{workspace<std::int32_t>(b, n), workspace<std::int32_t>(b, n, 4 * n),
               workspace<std::int32_t>(b, n + 1, 8 * n)},
        sorting(static_cast<std::byte*>(b.workspace) + list_bytes(n)) {}
  static std::int64_t list_bytes(std::int64_t n) { return (12 * n + 4 + 7) / 8 * 8; }
  static std::int64_t bytes(std::int64_t n) { return list_bytes(n) + grouping_bytes(n); }
};

// The ids are sorted, and each of them gets the sum over its places.
template <class T>
void backward(const Binding& b, const Lookup& op) {
  using In = EmbeddingBackwardInput;
  const auto dtable = global<T>(b.outputs[0]);
  const GroupedLookup sorted(b, op.ids);
  const Groups& groups = sorted.groups;
  launch_grouping({op.padding_id, op.vocabulary}, global<const std::int32_t>(b.inputs[In::kIds]),
                  groups, sorted.sorting);
  launch(clear<T>, one_thread_each(dtable.size()), dtable);
  launch(add_groups<T>, one_thread_each(op.ids * op.units), op.units,
         GroupLists<const std::int32_t>{groups.order, groups.unique, groups.begins},
         global<const T>(b.inputs[In::kDy]), dtable);
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
                       const Binding& b) { run(b, op); },
                   GroupedLookup::bytes(op.ids));
}

}  // namespace keel::cuda
