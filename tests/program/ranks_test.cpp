// Processes that a launcher started, where MPI does not find them.
#include "backends/ranks.h"

#include <doctest/doctest.h>

#include "tests/support/process.h"
#include "tests/support/small_run.h"
#include "tests/support/temp_dir.h"

namespace keel {
namespace {

TEST_CASE("ranks: one of several processes that cannot find the others ends with 7, and says why") {
  const test::TempDir temp;
  const auto result = test::run_keel(test::small_train(temp / "run"),
                                     {.environment = {{"PMI_SIZE", "3"}}, .may_leak = true});
  CHECK(result.code == 7);
  CHECK(
      result.err.starts_with("keel: error: this is one of 3 processes that were started "
                             "together, "));
  const std::string why =
      has_mpi() ? "a launcher of another MPI has started them" : "this keel was built without MPI";
  CHECK(result.err.find(why) != std::string::npos);
}

}  // namespace
}  // namespace keel
