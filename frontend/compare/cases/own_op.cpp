#include "frontend/compare/cases/own_op.h"

#include "src/ops/op_table.h"
#include "src/runtime/kernel_table.h"

namespace keel::compare {

void enter(const OwnOp& op) {
  const std::string_view name = op.info->name;
  check(op.kernels.contains("reference"), ErrorKind::kUsage,
        "[{}] kernels: expected one of reference, got none", name);
  for (const auto& [backend, prepare] : op.kernels) {
    check(backend == "reference" || backend == "onednn", ErrorKind::kUsage,
          "[{}] kernels: expected those of reference and onednn, got one of {}", name, backend);
  }
  add_op(*op.info);
  for (const auto& [backend, prepare] : op.kernels) add_kernel(backend, name, prepare);
  if (op.bound != nullptr) add_rule(name, op.bound);
  if (op.op_case != nullptr) add_case(name, op.op_case);
}

}  // namespace keel::compare
