// The list of all ops.
#include "src/ops/op_table.h"

#include <doctest/doctest.h>

#include <set>

#include "src/ops/elementwise.h"
#include "src/ops/matmul.h"
#include "tests/support/checks.h"

namespace keel::test {
namespace {

TEST_CASE("op_table: names are unique and lead back to their op") {
  std::set<std::string_view> names;
  for (const OpInfo* op : all_ops()) {
    CAPTURE(op->name);
    CHECK(names.insert(op->name).second);
    CHECK(find_op(op->name) == op);
    CHECK((op->infer != nullptr));
  }
  CHECK(find_op("matmul") == &kMatmul);
  CHECK(find_op("no_such_op") == nullptr);
}

TEST_CASE("op_table: the lists call every op by its name") {
  const std::vector<std::string_view> listed{
#define X(name, Name, kernel) #name,
#define VIEW(name, Name) #name,
#include "op_list.inc"
#undef VIEW
#undef X
#define X(name, Name) #name, #name "_backward",
#include "norm_list.inc"
#undef X
  };
  const auto ops = all_ops().subspan(kEwCount);
  REQUIRE(ops.size() == listed.size());
  for (std::size_t i = 0; i < ops.size(); ++i) CHECK(ops[i]->name == listed[i]);
}

TEST_CASE("op_table: an op says what its gradient is exactly when it has a backward") {
  for (const OpInfo* op : all_ops()) {
    CAPTURE(op->name);
    CHECK((op->backward != nullptr) == (op->gradient != GradientKind::kNone));
  }
}

}  // namespace
// A backward reads only values that are known after the forward, and finds them by their names.
TEST_CASE("op table: the backward of a norm reads inputs and outputs of the forward, and dy") {
  int norms = 0, listed = 0;
#define X(name, Name) ++listed;
#include "norm_list.inc"
#undef X
  for (const OpInfo* op : all_ops()) {
    const OpInfo* forward = op->forward;
    if (forward == nullptr) continue;
    ++norms;
    CAPTURE(op->name);
    const std::string dy = "d" + std::string(forward->output_names.front());
    for (const OpInput& input : op->inputs) {
      CAPTURE(input.name);
      const bool is_known =
          input_place(*forward, input.name) >= 0 || output_place(*forward, input.name) >= 0;
      CHECK((is_known || input.name == dy || input.name == "sums"));
    }
    CHECK(op->output_names.front() == "d" + std::string(forward->inputs.front().name));
  }
  CHECK(norms == listed);
}

}  // namespace keel::test
