// A backend's table of kernels: op name -> how one of its nodes is prepared, and which element
// types the kernel takes. Types are looked at once, when a node is prepared; kernels then read
// tensors by TensorRef::as without a check.
#pragma once

#include <algorithm>
#include <map>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "src/ops/elementwise.h"
#include "src/runtime/backend.h"

namespace keel {

// The element types, as the backend stores them, that a kernel reads and writes. What the op says
// of its inputs and outputs holds besides. Where it leaves no choice, every kernel takes what it
// says: ids are i32, and sums that norms over columns hand on are f64.
struct KernelTypes {
  std::vector<DTypes> inputs;  // by place; the last entry stands for all further places
  DTypes outputs;

  DTypes input(int i) const { return inputs[std::min(std::size_t(i), inputs.size() - 1)]; }
};

// The usual kernel: these types wherever its op takes floating values, integers where it does.
inline KernelTypes floating_kernel(DTypes floating) {
  const DTypes all = floating | DType::kI32 | DType::kU8;
  return {{all}, all};
}

// What the kernels of a backend take: the usual types, but for the ops named in `others`.
struct KernelTypeTable {
  KernelTypes usual;
  std::map<std::string_view, KernelTypes> others = {};
};

struct KernelRow {
  Prepare prepare;
  KernelTypes types;
};
using KernelTable = std::unordered_map<std::string_view, KernelRow>;

// The listed ops, and `elementwise` for every element-wise code. Throws Error{kCheckFailed} when
// `types` names an op that has no row.
KernelTable make_kernel_table(std::initializer_list<std::pair<std::string_view, Prepare>> ops,
                              Prepare elementwise, const KernelTypeTable& types);

// Why a kernel of these types does not take the node, such as "[embedding] ids: the kernel of
// onednn takes i32, got f32"; empty when it does.
std::string type_refusal(const Backend& backend, const NodeContext& context,
                         const KernelTypes& types);

// Prepares the node by its row; an op without one and a type that the row does not take are
// refused.
Prepared prepare_from(const KernelTable& table, const Backend& backend, const NodeContext& context);

}  // namespace keel
