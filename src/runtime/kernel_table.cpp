#include "src/runtime/kernel_table.h"

namespace keel {
namespace {

// Those of `declared` that the backend stores as one of `stored`.
DTypes taken(const Backend& backend, DTypes declared, DTypes stored) {
  DTypes result;
  for (const DType dtype : kAllDTypes) {
    if (declared.contains(dtype) && stored.contains(backend.storage(dtype)))
      result = result | dtype;
  }
  return result;
}

}  // namespace

KernelTable make_kernel_table(std::initializer_list<std::pair<std::string_view, Prepare>> ops,
                              Prepare elementwise, const KernelTypeTable& types) {
  KernelTable table;
  for (const auto& [name, prepare] : ops) table[name] = {prepare, types.usual};
  for (int code = 0; code < kEwCount; ++code) {
    table[elementwise_op(static_cast<EwCode>(code)).name] = {elementwise, types.usual};
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
  for (int j = 0; j < int(context.node.outputs.size()); ++j) {
    const DType dtype = context.output(j).dtype;
    const DTypes expected =
        op.outputs.is_one() ? op.outputs : taken(backend, op.outputs, types.outputs);
    if (expected.contains(dtype)) continue;
    return fmt::format("[{}] output {}: the kernel of {} gives {}, got {}", op.name, j,
                       backend.name(), expected.text(), name_of(dtype));
  }
  return "";
}

Prepared prepare_from(const KernelTable& table, const Backend& backend,
                      const NodeContext& context) {
  const auto row = table.find(context.node.op->name);
  if (row == table.end()) return refuse("no kernel for this op");
  std::string refusal = type_refusal(backend, context, row->second.types);
  return refusal.empty() ? row->second.prepare(context) : refuse(std::move(refusal));
}

}  // namespace keel
