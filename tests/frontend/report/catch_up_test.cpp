// Which updates get as far as the baseline gets.
#include "frontend/report/catch_up.h"

#include "frontend/report/report.h"
#include "tests/frontend/report/helpers.h"

namespace keel::report {
namespace {

Run run_of(const std::string& norm, const std::string& seed, const std::string& lr,
           const std::vector<double>& errors) {
  return made_run(norm + seed + lr, {{"model.norm", norm}, {"train.seed", seed}, {"train.lr", lr}},
                  errors);
}

std::vector<CatchUp> rows_of(const std::vector<Run>& runs, bool higher_is_better = false) {
  const std::vector<Section> sections = sections_of(runs);
  REQUIRE(sections.size() == 1);
  return catch_ups_of(sections[0], {{"error", "%", higher_is_better}, {"absent", "", false}});
}

TEST_CASE("catch-up: the first evaluation as good as the baseline's best") {
  const auto rows = rows_of({run_of("none", "1", "1", {40, 30, 20, 10, 12}),
                             run_of("layernorm", "1", "1", {30, 10, 4, 5})});
  REQUIRE(rows.size() == 1);
  CHECK(rows[0].metric == "error");
  CHECK(rows[0].group == "layernorm");
  CHECK(rows[0].baseline == "none");
  CHECK(rows[0].goal == 10);
  CHECK(rows[0].goal_step == 40);
  CHECK(rows[0].step == 20);
  CHECK(rows[0].share() == 0.5);
  CHECK(rows[0].best == 4);
  CHECK(rows[0].best_step == 30);
}

TEST_CASE("catch-up: higher may be better, and nothing may get there") {
  const std::vector<Run> runs{run_of("none", "1", "1", {40, 50, 45}),
                              run_of("layernorm", "1", "1", {30, 49})};
  const auto rows = rows_of(runs, true);
  REQUIRE(rows.size() == 1);
  CHECK(rows[0].goal == 50);
  CHECK(!rows[0].step);
  CHECK(!rows[0].share());
  CHECK(rows_of(runs)[0].step == 10);
}

TEST_CASE("catch-up: nobody gets ahead in what is neither better nor worse") {
  const std::vector<Run> runs{run_of("none", "1", "1", {40, 30}),
                              run_of("layernorm", "1", "1", {30, 10})};
  const Section section = sections_of(runs)[0];
  CHECK(catch_ups_of(section, {{"error", "%", false, true}}).size() == 1);
  CHECK(catch_ups_of(section, {{"error", "%", false, false}}).empty());
}

TEST_CASE("catch-up: several seeds are their median, and each group has its own baseline") {
  const auto rows =
      rows_of({run_of("none", "1", "1", {9, 6}), run_of("none", "2", "1", {9, 2}),
               run_of("layernorm", "1", "1", {5, 1}), run_of("layernorm", "2", "1", {2, 1}),
               run_of("layernorm", "1", "2", {1}), run_of("rmsnorm", "1", "1", {4})});
  REQUIRE(rows.size() == 2);  // nothing was trained without a norm at the other rate
  CHECK(rows[0].goal == 4);
  CHECK(rows[0].step == 10);
  CHECK(rows[1].group == "rmsnorm, lr=1");
  CHECK(rows[1].step == 10);
  CHECK(rows_of({run_of("a", "1", "1", {1}), run_of("b", "1", "1", {2})}).empty());
}

TEST_CASE("catch-up: as a table") {
  const std::vector<Run> runs{run_of("none", "1", "1", {40, 10}),
                              run_of("layernorm", "1", "1", {10, 5}),
                              run_of("rmsnorm", "1", "1", {30, 20})};
  const auto reports = make_report(runs, [](const Run&) {
    return std::vector<MetricFacts>{{"error", "%", false}};
  });
  CHECK(catch_up_rows(reports[0]) ==
        Rows{{"metric", "group", "baseline", "its best", "after updates", "reached after", "share",
              "own best", "after"},
             {"valid error %", "layernorm", "none", "10.00", "20", "10", "0.50", "5.00", "20"},
             {"valid error %", "rmsnorm", "none", "10.00", "20", "-", "-", "20.00", "20"}});
}

}  // namespace
}  // namespace keel::report
