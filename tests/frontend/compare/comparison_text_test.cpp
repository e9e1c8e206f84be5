// A comparison in words and as a picture, on synthetic nodes.
#include <map>

#include "frontend/compare/verdicts/comparison_page.h"
#include "tests/frontend/compare/helpers.h"
#include "tests/support/markup_check.h"

namespace keel::compare {
namespace {

NodeSummary made_node(const std::string& path, Verdict verdict) {
  NodeReport report;
  report.path = path;
  report.op = "matmul";
  report.backend = "onednn";
  report.errors.of_bound = 0.5;
  report.errors.sensitivity = verdict == Verdict::kInsensitive ? 0.5 : 1e-4;
  report.errors.of_usual = verdict == Verdict::kSuspect ? 2 : 0;
  if (verdict == Verdict::kUncompared) report.compared = false;
  if (verdict == Verdict::kRefused) report.refusal = "no";
  if (verdict == Verdict::kDiverges) report.errors.of_bound = 3;
  NodeSummary summary{report, 1, verdict == Verdict::kDiverges ? 1 : 0};
  REQUIRE(summary.verdict() == verdict);
  return summary;
}

Comparison made(const std::string& subject, const std::map<std::string, Verdict>& nodes) {
  Comparison c{.subject = subject, .nodes = {}, .first = {}, .nearest = {}};
  for (const auto& [path, verdict] : nodes) c.nodes.push_back(made_node(path, verdict));
  return c;
}

std::string verdict_on(const std::map<std::string, Verdict>& nodes) {
  const Comparison c = made("mlp", nodes);
  return verdict_text({&c, 1});
}

TEST_CASE("compare text: the verdict is a sentence that counts and names") {
  using enum Verdict;
  CHECK(verdict_on({}) == "no node was compared");
  CHECK(verdict_on({{"a", kOk}}) == "the node matches float64 within rounding error");
  CHECK(verdict_on({{"a", kOk}, {"b", kOk}}) == "all 2 nodes match float64 within rounding error");
  CHECK(verdict_on({{"a", kOk}, {"b", kInsensitive}, {"c", kInsensitive}}) ==
        "all 3 nodes match float64 within rounding error; 2 are too small to tell: b, c");
  CHECK(verdict_on({{"a", kOk}, {"b", kInsensitive}}) ==
        "all 2 nodes match float64 within rounding error; 1 is too small to tell: b");
  CHECK(verdict_on({{"a", kOk}, {"b", kSuspect}, {"c", kUncompared}, {"d", kRefused}}) ==
        "1 of 4 nodes matches float64 within rounding error; 1 is suspect: b; 1 was not compared: "
        "c; 1 was refused: d");
  CHECK(verdict_on({{"a", kOk}, {"b", kDiverges}}) ==
        "1 of 2 nodes differs from float64 by more than rounding explains: b");
  CHECK(verdict_on({{"a", kDiverges}, {"b", kDiverges}, {"c", kUncompared}, {"d", kUncompared}}) ==
        "2 of 4 nodes differ from float64 by more than rounding explains: a, b; 2 were not "
        "compared: c, d");
}

TEST_CASE("compare text: of several subjects names say of which, and some are left out") {
  using enum Verdict;
  const Comparison both[] = {made("x", {{"a", kInsensitive}}), made("y", {{"a", kInsensitive}})};
  CHECK(verdict_text(both) ==
        "all 2 nodes match float64 within rounding error; 2 are too small to tell: x: a, y: a");
  CHECK(verdict_text(both, 1) ==
        "all 2 nodes match float64 within rounding error; 2 are too small to tell: x: a and 1 "
        "more");
  CHECK(verdict_text(both, 0) ==
        "all 2 nodes match float64 within rounding error; 2 are too small to tell");
}

TEST_CASE("compare text: a table has the columns that decide, and a drift only of chains") {
  const Comparison c = made("mlp", {{"a", Verdict::kOk}, {"b", Verdict::kRefused}});
  const auto heading = [&](ErrorColumns columns) { return summary_rows(c.ranked(), columns)[0]; };
  CHECK(heading(ErrorColumns::kVerdict) == std::vector<std::string>{"", "backend", "error/bound",
                                                                    "sensitivity", "max abs", "op",
                                                                    "node"});
  CHECK(heading(ErrorColumns::kAll) ==
        std::vector<std::string>{"", "backend", "error/bound", "sensitivity", "max abs", "max rel",
                                 "max ulp", "nmse", "cosine - 1", "op", "node"});
  for (const std::string& column : heading(ErrorColumns::kAll)) {
    const bool is_explained = column.empty() || column == "backend" || column == "op" ||
                              column == "node" || column == "cosine - 1";
    CAPTURE(column);
    CHECK((is_explained ||
           summary_legend(ErrorColumns::kAll).find(column + ": ") != std::string::npos));
  }
  Comparison chained = c;
  chained.nodes[0].worst.drift = Errors{};
  CHECK(summary_rows(chained.ranked(), ErrorColumns::kVerdict)[0][5] == "drift");
}

TEST_CASE("compare page: no name is cut off, however long, and the axis says what it is") {
  for (const std::size_t length : {1, 30, 300}) {
    const Comparison c =
        made("mlp", {{std::string(length, 'n'), Verdict::kOk}, {"b", Verdict::kOk}});
    const std::string svg = error_picture(c);
    CHECK(test::well_formed(svg));
    const std::size_t name =
        svg.find("<text x=\"", svg.find("<title>nn") == std::string::npos ? svg.find("<title>n")
                                                                          : svg.find("<title>nn"));
    const double right = std::stod(svg.substr(name + 9));
    // No character of this type is wider than 0.6 of its size on average.
    CHECK(right >= 0.55 * 11 * double(length + std::string(" matmul onednn").size()));
    CHECK(svg.find("in units of what rounding explains (logarithmic)<") != std::string::npos);
  }
}

}  // namespace
}  // namespace keel::compare
