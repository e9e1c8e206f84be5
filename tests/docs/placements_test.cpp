// The table of placements in docs/norms.md
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "frontend/nn/placement.h"
#include "tests/support/temp_dir.h"

namespace keel::nn {
namespace {

TEST_CASE("docs: norms.md has the facts about every placement") {
  const std::string page = test::read_bytes(KEEL_SOURCE "/docs/norms.md");
  for (const PlacementFacts& facts : kPlacements) {
    const std::string row =
        fmt::format("\n| `{}` | {} | {} | {} | {} |\n", facts.name, facts.formula,
                    facts.final_norm ? "yes" : "no", facts.help, facts.source);
    CAPTURE(row);
    CHECK(page.find(row) != page.npos);
  }
}

}  // namespace
}  // namespace keel::nn
