#include "frontend/compare/cases/op_cases.h"

#include "src/core/registry.h"

namespace keel::compare {
namespace {

OpCaseTable& all_cases() {
  static OpCaseTable all = [] {
    OpCaseTable joined;
    for (const OpCaseTable* family :
         {&attention_cases(), &column_cases(), &layout_cases(), &loss_cases(), &product_cases(),
          &random_cases(), &recurrent_cases(), &update_cases()}) {
      joined.insert(family->begin(), family->end());
    }
    return joined;
  }();
  return all;
}

}  // namespace

const OpCaseTable& op_cases() { return all_cases(); }

void add_case(std::string_view op, BuildOp build) {
  expect_not_frozen("op case", op);
  all_cases()[op] = {build, build};
}

}  // namespace keel::compare
