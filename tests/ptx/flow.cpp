// Instructions that the warp itself runs, or nobody.
#include "tests/ptx/forms.h"

namespace keel::ptx {

void add_flow_forms(Forms& forms) {
  const auto put = [&](const char* name, Flow flow, std::vector<Type> operands) {
    forms.add({name, nullptr, flow, 0, std::move(operands), {}});
  };
  put("bra", Flow::kBranch, {});
  put("bra.uni", Flow::kBranch, {});
  put("ret", Flow::kExit, {});
  put("exit", Flow::kExit, {});
  put("bar.sync", Flow::kBarrier, {Type::kWord, Type::kWord});
  put("call.uni", Flow::kCall, {});
}

}  // namespace keel::ptx
