// A backend's table of kernels: op name -> how one of its nodes is prepared.
#pragma once

#include <string_view>
#include <unordered_map>
#include <utility>

#include "src/ops/elementwise.h"
#include "src/runtime/backend.h"

namespace keel {

using KernelTable = std::unordered_map<std::string_view, Prepare>;

// The listed ops, and `elementwise` for every element-wise code.
inline KernelTable make_kernel_table(
    std::initializer_list<std::pair<const std::string_view, Prepare>> ops, Prepare elementwise) {
  KernelTable table(ops);
  for (int code = 0; code < kEwCount; ++code) {
    table[elementwise_op(static_cast<EwCode>(code)).name] = elementwise;
  }
  return table;
}

// Looks the node's op up; an op that is not listed is refused.
inline Prepared prepare_from(const KernelTable& table, const NodeContext& context) {
  const auto found = table.find(context.node.op->name);
  if (found == table.end()) return refuse("no kernel for this op");
  return found->second(context);
}

}  // namespace keel
