// keel reproduce all: every table on one page, with reasons where nothing can be trained.
#include "studies/paper_table.h"
#include "tests/program/helpers.h"
#include "tests/support/temp_dir.h"

namespace keel::cli {
namespace {

TEST_CASE("reproduce: all tables stand on one page, also those that cannot be trained" *
          doctest::test_suite("slow")) {
  const test::TempDir temp;
  const std::string out = temp / "out";
  const ProcessResult result = run_keel({"reproduce", "all", "--as-is", "--data", temp / "nothing",
                                         "--out", out, "--seeds", "1"});
  REQUIRE(result.code == 0);
  const std::string page = test::read_bytes(std::filesystem::path(out) / "all.md"),
                    html = test::read_bytes(std::filesystem::path(out) / "all.html");
  for (const study::PaperTable& table : study::paper_tables()) {
    CAPTURE(table.name);
    CHECK(holds(page, "# " + table.name + ": "));
    CHECK(holds(html, table.name + ": "));
  }
  CHECK(holds(page, "Not run: "));
  // The rows of differences are computed, as improvements: bits a character of 1.04 and 1.12.
  CHECK(holds(page, "detachnorm - none"));
  CHECK(holds(page, "-0.08"));
  // A value of a table of which nothing can be trained: the best of Cooijmans et al.
  CHECK(holds(page, "43.9 / not run"));
}

TEST_CASE("reproduce: what is of one table is refused for all") {
  for (const std::vector<std::string>& more :
       {std::vector<std::string>{"--tasks", "rt"}, {"--norms", "none"}, {"--plan"}}) {
    std::vector<std::string> arguments{"reproduce", "all"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    check_refusal(run_keel(arguments), 2, "reproduce all: expected no --tasks, --norms or --plan");
  }
}

}  // namespace
}  // namespace keel::cli
