// A backend's table of kernels. A row says how a node of the op is prepared and which element types
// the kernel takes. Types are checked once, when a node is prepared; kernels then read tensors by
// TensorRef::as without a check.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "src/ops/elementwise.h"
#include "src/runtime/backend.h"

namespace keel {

// The element types, as the backend stores them, that a kernel reads and writes. The op's own rules
// hold as well. Where the op allows only one type, every kernel takes that type: ids are i32, and
// the sums that column norms hand on are f64.
struct KernelTypes {
  std::vector<DTypes> inputs;  // by place; the last entry stands for all further places
  DTypes outputs;
  bool narrows = false;  // whether it rounds output 0 to bf16 where the graph asks for it

  DTypes input(int i) const { return inputs[std::min(std::size_t(i), inputs.size() - 1)]; }
};

// The usual kernel: these types where its op takes floating values, integers where it takes those.
inline KernelTypes floating_kernel(DTypes floating, bool narrows = false) {
  const DTypes all = floating | DType::kI32 | DType::kU8;
  return {{all}, all, narrows};
}

// The types that the kernels of a backend take: the usual ones, except for the ops in `others` and,
// if these have types of their own, element-wise ops.
struct KernelTypeTable {
  KernelTypes usual;
  std::map<std::string_view, KernelTypes> others = {};
  std::optional<KernelTypes> elementwise = {};
};

struct KernelRow {
  Prepare prepare;
  KernelTypes types;
};
using KernelTable = std::unordered_map<std::string_view, KernelRow>;

// Makes a table of the listed ops and of all element-wise ops, which `elementwise` prepares. Throws
// Error{kCheckFailed} when `types` names an op that has no row.
KernelTable make_kernel_table(std::initializer_list<std::pair<std::string_view, Prepare>> ops,
                              Prepare elementwise, const KernelTypeTable& types);

// Says why a kernel of these types does not take the node, for example "[embedding] ids: the kernel
// of onednn takes i32, got f32". Empty when it takes the node.
std::string type_refusal(const Backend& backend, const NodeContext& context,
                         const KernelTypes& types);

// Whether the table has a kernel for the node's op that rounds output 0 to bf16.
bool narrows_result(const KernelTable& table, const NodeContext& context);

// Adds a kernel of an op from outside (add_op) to the backend of that name, before any program is
// compiled. It takes floating values as the backend stores float32, and integers.
void add_kernel(const std::string& backend, std::string_view op, Prepare prepare);

// Prepares the node as its row says. Refuses an op that has no row and no added kernel, and a type
// that the kernel does not take.
Prepared prepare_from(const KernelTable& table, const Backend& backend, const NodeContext& context);

}  // namespace keel
