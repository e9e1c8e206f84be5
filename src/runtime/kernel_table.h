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

// The first type of the node's values that a backend of float32 kernels cannot take, or "": index
// types (i32, u8) are fine, floating ones must be f32.
inline std::string first_wide_type(const NodeContext& context) {
  const auto is_wide = [](const TensorType& t) {
    return t.dtype == DType::kF64 || t.dtype == DType::kBF16;
  };
  for (const TensorType& type : context.node.outputs) {
    if (is_wide(type)) return type.text();
  }
  for (int i = 0; i < int(context.node.inputs.size()); ++i) {
    if (context.has(i) && is_wide(context.input(i))) return context.input(i).text();
  }
  return "";
}

// The same for a backend whose kernels compute in float32 only.
inline Prepared prepare_f32_from(const KernelTable& table, const NodeContext& context) {
  const std::string type = first_wide_type(context);
  if (type.empty()) return prepare_from(table, context);
  return refuse(fmt::format("computes in f32 only, got {}; use the reference backend", type));
}

}  // namespace keel
