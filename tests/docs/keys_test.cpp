// docs/keys.md
#include "tests/program/helpers.h"

namespace keel::cli {
namespace {

TEST_CASE("docs: keys.md is what the program writes") {
  const ProcessResult page = run_keel({"list", "keys", "--markdown"});
  CHECK(page.code == 0);
  CHECK((page.out == test::read_bytes(KEEL_SOURCE "/docs/keys.md")));
}

}  // namespace
}  // namespace keel::cli
