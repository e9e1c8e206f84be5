// The promises of every op on the backend under test: it agrees with the reference where registers,
// tiles and blocks end, and the number of threads changes no bit of it.
#include "frontend/compare/cases/layer_subjects.h"
#include "frontend/compare/cases/op_cases.h"
#include "tests/backends/kernel_checks.h"
#include "tests/support/thoroughness.h"

namespace keel::test {
namespace {

void check_sizes(const OpCaseTable& table) {
  for_each_target([&] {
    for (const auto& [op, cases] : table) {
      if (cases.sized == nullptr) continue;
      for (const std::int64_t n : kSizes) {
        CAPTURE(op);
        CAPTURE(n);
        check_agrees(*sized_subject(std::string(op), n));
      }
    }
  });
}

TEST_CASE("backend layout ops: every size" * doctest::test_suite("slow")) {
  check_sizes(layout_cases());
}
TEST_CASE("backend loss ops: every size" * doctest::test_suite("slow")) {
  check_sizes(loss_cases());
}
TEST_CASE("backend product ops: every size" * doctest::test_suite("slow")) {
  check_sizes(product_cases());
}
TEST_CASE("backend random ops: every size" * doctest::test_suite("slow")) {
  check_sizes(random_cases());
}
TEST_CASE("backend recurrent ops: every size" * doctest::test_suite("slow")) {
  check_sizes(recurrent_cases());
}
TEST_CASE("backend optimizers: every size" * doctest::test_suite("slow")) {
  check_sizes(update_cases());
}

TEST_CASE("backend: the number of threads changes no bit of any op" * doctest::test_suite("slow")) {
  const CaseSize size = is_emulated() ? CaseSize::kSmall : CaseSize::kLarge;
  for (const std::string& op : subject_ops()) {
    CAPTURE(op);
    if (!has_own_subject(op)) continue;
    for (const auto& subject : op_subjects(op, {.size = size})) {
      const SubjectStep step = subject->at(3);
      check_thread_counts([&](int threads) {
        return run_graph(*make_backend(default_backend(), {threads}), *step.graph, step.feeds);
      });
    }
  }
}

}  // namespace
}  // namespace keel::test
