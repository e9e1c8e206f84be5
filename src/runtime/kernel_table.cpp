#include "src/runtime/kernel_table.h"

#include "src/core/registry.h"

namespace keel {
namespace {

// The types of `declared` that the backend stores as one of `stored`.
DTypes taken(const Backend& backend, DTypes declared, DTypes stored) {
  DTypes result;
  for (const DType dtype : kAllDTypes) {
    if (declared.contains(dtype) && stored.contains(backend.storage(dtype)))
      result = result | dtype;
  }
  return result;
}

// Kernels of ops from outside, by backend and op.
std::map<std::pair<std::string, std::string_view>, Prepare>& added_kernels() {
  static std::map<std::pair<std::string, std::string_view>, Prepare> kernels;
  return kernels;
}

Prepared prepare_row(const KernelRow& row, const Backend& backend, const NodeContext& context) {
  std::string refusal = type_refusal(backend, context, row.types);
  return refusal.empty() ? row.prepare(context) : refuse(std::move(refusal));
}

}  // namespace

KernelTable make_kernel_table(std::initializer_list<std::pair<std::string_view, Prepare>> ops,
                              Prepare elementwise, const KernelTypeTable& types) {
  KernelTable table;
  const KernelTypes elementwise_types = types.elementwise.value_or(types.usual);
  for (const auto& [name, prepare] : ops) {
    table[name] = {prepare, prepare == elementwise ? elementwise_types : types.usual};
  }
  for (int code = 0; code < kEwCount; ++code) {
    table[elementwise_op(static_cast<EwCode>(code)).name] = {elementwise, elementwise_types};
  }
  for (const auto& [name, other] : types.others) {
    const auto row = table.find(name);
    check(row != table.end(), ErrorKind::kCheckFailed, "kernel types: no kernel is called '{}'",
          name);
    row->second.types = other;
  }
  return table;
}

std::string type_refusal(const Backend& backend, const NodeContext& context,
                         const KernelTypes& types) {
  const OpInfo& op = *context.node.op;
  for (int i = 0; i < int(context.node.inputs.size()); ++i) {
    if (!context.has(i)) continue;
    const DType dtype = context.input(i).dtype;
    const DTypes declared = input_types(op, i);
    const DTypes expected = declared.is_one() ? declared : taken(backend, declared, types.input(i));
    if (expected.contains(dtype)) continue;
    return fmt::format("[{}] {}: the kernel of {} takes {}, got {}", op.name, input_name(op, i),
                       backend.name(), expected.text(), name_of(dtype));
  }
  const bool is_bf16 = context.node.is_bf16;
  if (is_bf16 && !types.narrows) {
    return fmt::format("[{}] output 0: the kernel of {} does not round it to bf16", op.name,
                       backend.name());
  }
  for (int j = is_bf16 ? 1 : 0; j < int(context.node.outputs.size()); ++j) {
    const DType dtype = context.output(j).dtype;
    const DTypes expected =
        op.outputs.is_one() ? op.outputs : taken(backend, op.outputs, types.outputs);
    if (expected.contains(dtype)) continue;
    return fmt::format("[{}] output {}: the kernel of {} gives {}, got {}", op.name, j,
                       backend.name(), expected.text(), name_of(dtype));
  }
  return "";
}

bool narrows_result(const KernelTable& table, const NodeContext& context) {
  const auto row = table.find(context.node.op->name);
  return row != table.end() && row->second.types.narrows;
}

Prepared prepare_from(const KernelTable& table, const Backend& backend,
                      const NodeContext& context) {
  const std::string_view op = context.node.op->name;
  if (const auto row = table.find(op); row != table.end()) {
    return prepare_row(row->second, backend, context);
  }
  const auto added = added_kernels().find({std::string(backend.name()), op});
  if (added == added_kernels().end()) return refuse("no kernel for this op");
  const KernelRow row{added->second, floating_kernel(backend.storage(DType::kF32))};
  return prepare_row(row, backend, context);
}

void add_kernel(const std::string& backend, std::string_view op, Prepare prepare) {
  expect_not_frozen("kernel", op);
  added_kernels()[{backend, op}] = prepare;
}

}  // namespace keel
