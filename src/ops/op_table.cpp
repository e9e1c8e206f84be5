#include "src/ops/op_table.h"

#include "src/core/registry.h"
#include "src/ops/elementwise.h"

namespace keel {

#define X(name, Name, kernel) extern const OpInfo k##Name;
#define VIEW(name, Name) extern const OpInfo k##Name;
#include "op_list.inc"
#undef VIEW
#undef X
#define X(name, Name) extern const OpInfo k##Name, k##Name##Backward;
#include "norm_list.inc"
#undef X

namespace {

std::vector<const OpInfo*> make_list() {
  std::vector<const OpInfo*> list;
  for (int code = 0; code < kEwCount; ++code) {
    list.push_back(&elementwise_op(static_cast<EwCode>(code)));
  }
#define X(name, Name, kernel) list.push_back(&k##Name);
#define VIEW(name, Name) list.push_back(&k##Name);
#include "op_list.inc"
#undef VIEW
#undef X
#define X(name, Name) list.insert(list.end(), {&k##Name, &k##Name##Backward});
#include "norm_list.inc"
#undef X
  return list;
}

std::vector<const OpInfo*>& list() {
  static std::vector<const OpInfo*> ops = make_list();
  return ops;
}

}  // namespace

std::span<const OpInfo* const> all_ops() { return list(); }

void add_op(const OpInfo& op) {
  expect_not_frozen("op", op.name);
  check(!op.name.empty() && find_op(op.name) == nullptr, ErrorKind::kUsage,
        "op: expected a new name, got '{}'", op.name);
  list().push_back(&op);
}

const OpInfo* find_op(std::string_view name) {
  for (const OpInfo* op : all_ops()) {
    if (op->name == name) return op;
  }
  return nullptr;
}

}  // namespace keel
